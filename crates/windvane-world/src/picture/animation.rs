//! Shapes that move, over and over, without a script. Who cannot show motion shows the first frame.

use super::svg::{Style, Svg, listed, number};

/// What an attribute is in each frame.
fn animate(attribute: &str, values: &[String], seconds: f64) -> String {
    let (values, seconds) = (values.join(";"), number(seconds));
    format!(
        "<animate attributeName=\"{attribute}\" values=\"{values}\" dur=\"{seconds}s\" calcMode=\"discrete\" repeatCount=\"indefinite\"/>"
    )
}

impl Svg {
    /// Straight lines from point to point, in each frame of a loop of so many seconds.
    pub fn moving_polyline(&mut self, frames: &[Vec<(f64, f64)>], seconds: f64, style: &Style) {
        let values: Vec<String> = frames.iter().map(|points| listed(points.iter().copied())).collect();
        let first = values.first().map_or("", String::as_str);
        self.line_of(&format!(
            "<polyline points=\"{first}\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{}>{}</polyline>",
            style.attributes(),
            animate("points", &values, seconds)
        ));
    }

    /// A circle around a point in each frame of a loop of so many seconds.
    pub fn moving_circle(&mut self, centres: &[(f64, f64)], seconds: f64, radius: f64, style: &Style) {
        let axis = |of: fn(&(f64, f64)) -> f64| centres.iter().map(|c| number(of(c))).collect::<Vec<_>>();
        let [x, y] = [axis(|c| c.0), axis(|c| c.1)];
        let first = |values: &[String]| values.first().cloned().unwrap_or_else(|| "0".to_owned());
        self.line_of(&format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}>{}{}</circle>",
            first(&x),
            first(&y),
            number(radius),
            style.attributes(),
            animate("cx", &x, seconds),
            animate("cy", &y, seconds)
        ));
    }

    /// Draws what `draw` draws, moved by another offset in each frame of a loop of so many seconds.
    pub fn moving(&mut self, offsets: &[(f64, f64)], seconds: f64, draw: impl FnOnce(&mut Self)) {
        let values: Vec<String> =
            offsets.iter().map(|(x, y)| format!("{} {}", number(*x), number(*y))).collect();
        let first = values.first().cloned().unwrap_or_else(|| "0 0".to_owned());
        self.line_of(&format!("<g transform=\"translate({first})\">"));
        self.line_of(&format!(
            "<animateTransform attributeName=\"transform\" type=\"translate\" values=\"{}\" dur=\"{}s\" calcMode=\"discrete\" repeatCount=\"indefinite\"/>",
            values.join(";"),
            number(seconds)
        ));
        draw(self);
        self.line_of("</g>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Colour;

    #[test]
    fn a_shape_has_a_value_for_every_frame_and_begins_with_the_first() {
        let mut svg = Svg::new(10.0, 10.0);
        let style = Style::line(Colour::WHITE, 1.0);
        svg.moving_polyline(&[vec![(0.0, 1.0), (2.0, 3.0)], vec![(4.0, 5.0), (6.0, 7.5)]], 2.0, &style);
        svg.moving_circle(&[(1.0, 2.0), (3.0, 4.0)], 2.0, 1.0, &style);
        svg.moving(&[(0.0, 0.0), (1.0, -1.0)], 2.0, |_| {});
        let text = svg.finish();
        for part in [
            "<polyline points=\"0,1 2,3\"",
            "values=\"0,1 2,3;4,5 6,7.5\" dur=\"2s\"",
            "<circle cx=\"1\" cy=\"2\"",
            "values=\"2;4\"",
            "values=\"0 0;1 -1\"",
        ] {
            assert!(text.svg().contains(part), "{part} in {}", text.svg());
        }
        assert!(text.png(1.0).is_ok(), "who cannot show motion shows the first frame");
    }
}
