//! A report page: one HTML file without scripts or requests, readable on a phone, in dark and light.

use std::fmt::Write as _;
use windvane_world::picture::{Colour, Ink};

/// A page being written, part by part.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    figures: usize,
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --paper: #ffffff; --card: #ffffff; --shade: #00000038; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9da7b3; --line: #30363d; --paper: #0d1117; --card: #161b22; --shade: #768390a0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
p, figcaption { max-width: 46rem; } p.lead { font-size: 1.1rem; color: var(--soft); }
/* A table that is wider than its place shows a shade at the edge behind which it goes on. */
.scroll { overflow-x: auto; background:
  linear-gradient(to left, var(--paper) 1.2rem, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 1.1rem 100% no-repeat scroll; }
table { border-collapse: separate; border-spacing: 0; min-width: 100%; font-size: .94rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); text-align: left; }
thead th { color: var(--soft); font-weight: 600; min-width: 5.5rem; vertical-align: bottom; white-space: normal; }
figure { margin: 1.5rem 0; }
figure svg { display: block; width: 100%; height: auto; margin: 0 auto; padding: .5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
figure svg.narrow { display: none; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; }
pre { overflow-x: auto; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 8px; font-size: .88rem; }
@media (max-width: 42rem) {
  th:first-child, td:first-child { min-width: 7rem; max-width: 9rem; white-space: normal; box-shadow: 1px 0 var(--line); }
  td:nth-child(2), th:nth-child(2) { padding-left: .6rem; }
  figure svg.wide { display: none; } figure svg.narrow { display: block; } figure svg { padding: 0; }
}
";

/// The greys of figures, and what they become in the dark.
const DARK: [(Colour, &str); 7] = [
    (Colour::WHITE, "#161b22"),
    (Ink::PAPER, "#1c2128"),
    (Ink::FAINT, "#30363d"),
    (Ink::LINE, "#768390"),
    (Ink::WALL, "#6e7681"),
    (Ink::SOFT, "#adbac7"),
    (Ink::TEXT, "#e6edf3"),
];

/// A figure may be drawn larger than it is, up to this.
const LARGEST: f64 = 1.4;

/// The rules that turn figures dark where the reader wants it dark: a style goes before an attribute of SVG.
fn dark_figures() -> String {
    let rules = DARK.iter().map(|(light, dark)| {
        format!(
            "  figure svg [fill=\"{light}\"] {{ fill: {dark}; }} figure svg [stroke=\"{light}\"] {{ stroke: {dark}; }}\n"
        )
    });
    format!("@media (prefers-color-scheme: dark) {{\n{}}}\n", rules.collect::<String>())
}

/// Nothing may be asked for; a browser that is made to try says so in its console.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

impl Page {
    /// A page with its title and the answer in a sentence or two.
    pub fn new(title: &str, lead: &str) -> Self {
        let body = format!("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", escape(title), escape(lead));
        Self { title: title.to_owned(), body, figures: 0 }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.push(&format!("<h2>{}</h2>", escape(text)));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>", escape(text)));
    }

    /// A command or other text to copy.
    pub fn code(&mut self, text: &str) {
        self.push(&format!("<pre><code>{}</code></pre>", escape(text)));
    }

    /// A table; the first column holds names, the others numbers.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            cells.fold(String::new(), |mut out, cell| {
                let _ = write!(out, "<{tag}>{}</{tag}>", escape(cell));
                out
            })
        };
        let head = cells("th", &mut header.iter().copied());
        let body = rows.iter().fold(String::new(), |mut out, row| {
            let _ = writeln!(out, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
            out
        });
        self.push(&format!(
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        ));
    }

    /// A figure drawn as SVG, perhaps once more for narrow screens, with its caption.
    pub fn figure(&mut self, svg: &str, narrow: Option<&str>, caption: &str) {
        let pictures = match narrow {
            Some(narrow) => self.picture(svg, "wide") + &self.picture(narrow, "narrow"),
            None => self.picture(svg, ""),
        };
        let caption = escape(caption);
        self.push(&format!("<figure>{pictures}<figcaption>{caption}</figcaption></figure>"));
    }

    /// A picture as a part of the page, for screens of one kind.
    fn picture(&mut self, svg: &str, kind: &str) -> String {
        // Inside HTML, an SVG needs no XML declaration.
        let svg = svg.find("<svg").map_or(svg, |start| &svg[start..]);
        // Names within a figure are its own; on a page they must not meet.
        self.figures += 1;
        let prefix = format!("f{}-", self.figures);
        let svg = svg.replace("id=\"", &format!("id=\"{prefix}")).replace("url(#", &format!("url(#{prefix}"));
        let width =
            svg.split_once(" width=\"").and_then(|(_, rest)| rest.split('"').next()?.parse::<f64>().ok());
        let most =
            width.map_or(String::new(), |width| format!(" style=\"max-width: {:.0}px\"", LARGEST * width));
        svg.replacen("<svg", &format!("<svg class=\"{kind}\"{most}"), 1)
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let Self { title, body, .. } = self;
        let (title, dark) = (escape(title), dark_figures());
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{STYLE}{dark}</style>\n</head>\n\
             <body>\n{body}</body>\n</html>\n"
        )
    }

    fn push(&mut self, html: &str) {
        self.body.push_str(html);
        self.body.push('\n');
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn a_page_asks_for_nothing_and_escapes_what_it_is_given() {
        let mut page = Page::new("a < b", "x & y");
        page.table(&["method", "success"], &[vec!["<script>".into(), "0.5".into()]]);
        page.figure("<?xml version=\"1.0\"?><svg></svg>", None, "a \"figure\"");
        let html = page.html();
        assert!(!html.contains("<script") && !html.contains("http:") && !html.contains("<?xml"));
        assert!(
            html.contains("a &lt; b")
                && html.contains("&lt;script&gt;")
                && html.contains("<svg class=\"\"></svg>")
        );
    }

    #[test]
    fn figures_follow_the_screen_and_the_dark() {
        let mut page = Page::new("t", "l");
        let svg = "<svg width=\"500\"><clipPath id=\"c\"/><g clip-path=\"url(#c)\"/></svg>";
        page.figure(svg, Some(svg), "twice");
        let html = page.html();
        assert!(html.contains("<svg class=\"wide\" style=\"max-width: 700px\" width=\"500\">"), "{html}");
        assert!(html.contains("<svg class=\"narrow\"") && html.contains("svg.wide { display: none; }"));
        assert!(html.contains("id=\"f1-c\"") && html.contains("url(#f2-c)"), "names do not meet");
        for light in [super::Ink::TEXT, super::Ink::SOFT, super::Colour::WHITE] {
            assert!(html.contains(&format!("[fill=\"{light}\"] {{ fill: #")), "{light} has a dark form");
        }
        assert!(html.contains("position: sticky"), "names stay in sight while numbers scroll");
    }
}
