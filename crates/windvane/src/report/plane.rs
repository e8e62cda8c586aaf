//! Vectors of many dimensions in a plane: principal components, and the scatter of beliefs.

use crate::linalg::eigen;
use windvane_world::Split;
use windvane_world::picture::{Axes, CATEGORIES, Margins, Mark, Picture, Sheet, Style, legend};

/// The two directions along which rows differ most.
#[derive(Clone, Debug)]
pub struct Plane {
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    /// The share of all variance along each.
    pub shares: [f64; 2],
}

/// A flat list as `count` rows.
pub fn rows(flat: &[f32], count: usize) -> Vec<Vec<f32>> {
    let width = flat.len() / count.max(1);
    (0..count).map(|row| flat[row * width..(row + 1) * width].to_vec()).collect()
}

impl Plane {
    /// The first two principal components of rows.
    pub fn of(rows: &[Vec<f32>]) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let mut mean = vec![0.0; width];
        for row in rows {
            mean.iter_mut().zip(row).for_each(|(m, x)| *m += f64::from(*x) / rows.len() as f64);
        }
        let mut covariance = vec![0.0; width * width];
        for row in rows {
            let centred: Vec<f64> = row.iter().zip(&mean).map(|(x, m)| f64::from(*x) - m).collect();
            for (line, x) in covariance.chunks_exact_mut(width.max(1)).zip(&centred) {
                line.iter_mut().zip(&centred).for_each(|(c, y)| *c += x * y);
            }
        }
        let (values, vectors) = eigen(covariance, width);
        let total: f64 = values.iter().sum::<f64>().max(1e-300);
        let axis = |i: usize| vectors.get(i * width..(i + 1) * width).map_or(Vec::new(), <[f64]>::to_vec);
        let share = |i: usize| values.get(i).copied().unwrap_or(0.0) / total;
        Self { mean, axes: [axis(0), axis(1)], shares: [share(0), share(1)] }
    }

    /// Where a row is.
    pub fn at(&self, row: &[f32]) -> [f64; 2] {
        let centred = |axis: &Vec<f64>| {
            row.iter().zip(&self.mean).zip(axis).map(|((x, m), a)| (f64::from(*x) - m) * a).sum()
        };
        [centred(&self.axes[0]), centred(&self.axes[1])]
    }

    /// Where a vector points, the mean left aside.
    pub fn direction(&self, vector: &[f32]) -> [f64; 2] {
        let along = |axis: &Vec<f64>| vector.iter().zip(axis).map(|(x, a)| f64::from(*x) * a).sum();
        [along(&self.axes[0]), along(&self.axes[1])]
    }
}

/// Draws beliefs of training and unseen contexts, `trajectories` rows of each context, in the plane of the training ones.
pub fn draw_beliefs(about: &str, sets: &[(Split, Vec<Vec<f32>>)], trajectories: usize) -> Picture {
    let panel = (300.0, 260.0);
    let sheet =
        Sheet::new(sets.len(), 2, panel, (66.0, 20.0), Margins { left: 46.0, right: 8.0, bottom: 58.0 });
    let mut svg = sheet.begin("Beliefs about hidden dynamics", about);
    for (index, (split, rows)) in sets.iter().enumerate() {
        let plane = Plane::of(rows);
        let points: Vec<[f64; 2]> = rows.iter().map(|row| plane.at(row)).collect();
        let range = |k: usize| {
            let low = points.iter().map(|p| p[k]).fold(f64::INFINITY, f64::min);
            let high = points.iter().map(|p| p[k]).fold(f64::NEG_INFINITY, f64::max);
            let room = 0.08 * (high - low);
            (low - room, high + room)
        };
        let title = if *split == Split::Train { "contexts seen in training" } else { "unseen contexts" };
        sheet.panel_title(&mut svg, index, title);
        let axes = Axes::new(sheet.panel(index), range(0), range(1));
        axes.draw(&mut svg);
        for (number, point) in points.iter().enumerate() {
            let colour = CATEGORIES[number / trajectories % CATEGORIES.len()];
            svg.circle(axes.at(point[0], point[1]), 3.2, &Style::fill(colour).opacity(0.85));
        }
        axes.frame(&mut svg);
        let label = |k: usize| format!("component {} ({:.0}% of variance)", k + 1, 100.0 * plane.shares[k]);
        axes.label(&mut svg, &label(0), &label(1));
    }
    let contexts = sets.iter().map(|(_, rows)| rows.len() / trajectories.max(1)).max().unwrap_or(0);
    let names: Vec<String> = (1..=contexts).map(|i| format!("context {i}")).collect();
    let entries: Vec<(Mark, &str)> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (Mark::Dot(CATEGORIES[i % CATEGORIES.len()]), name.as_str()))
        .collect();
    let area = sheet.area();
    legend(&mut svg, (area.x, area.y + area.height + 48.0), &entries);
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_components_find_the_plane_that_points_lie_in() {
        // Points of a plane in four dimensions, three times as wide one way.
        let rows: Vec<Vec<f32>> = (0..40)
            .map(|i| {
                let (a, b) = (3.0 * (i as f32 * 0.7).sin(), (i as f32 * 1.3).cos());
                vec![1.0 + a, 2.0, b, -a]
            })
            .collect();
        let plane = Plane::of(&rows);
        assert!((plane.shares[0] + plane.shares[1] - 1.0).abs() < 1e-9, "{:?}", plane.shares);
        assert!(plane.shares[0] > 0.8);
        let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
        let full: f64 =
            rows[3].iter().zip(&rows[9]).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>().sqrt();
        assert!((distance(plane.at(&rows[3]), plane.at(&rows[9])) - full).abs() < 1e-5);
    }
}
