//! A report page: one HTML file without scripts or requests, readable on a phone, in dark and light.

use std::fmt::Write as _;

/// A page being written, part by part.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    figures: usize,
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --paper: #ffffff; --strong: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9da7b3; --line: #30363d; --paper: #0d1117; --strong: #58a6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
p.lead { font-size: 1.1rem; color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table { font-size: .94rem; } th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--soft); font-weight: 600; }
figure { margin: 1.5rem 0; } figure .scroll { background: #ffffff; border: 1px solid var(--line); border-radius: 8px; padding: .5rem; }
figure svg { display: block; max-width: 100%; height: auto; min-width: 34rem; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; }
pre { overflow-x: auto; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 8px; font-size: .88rem; }
";

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
            "<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        ));
    }

    /// A figure drawn as SVG, with its caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        // Inside HTML, an SVG needs no XML declaration.
        let svg = svg.find("<svg").map_or(svg, |start| &svg[start..]);
        // Names within a figure are its own; on a page they must not meet.
        self.figures += 1;
        let prefix = format!("f{}-", self.figures);
        let svg = svg.replace("id=\"", &format!("id=\"{prefix}")).replace("url(#", &format!("url(#{prefix}"));
        let caption = escape(caption);
        self.push(&format!(
            "<figure><div class=\"scroll\">{svg}</div><figcaption>{caption}</figcaption></figure>"
        ));
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let Self { title, body, .. } = self;
        let title = escape(title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
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
        page.figure("<?xml version=\"1.0\"?><svg></svg>", "a \"figure\"");
        let html = page.html();
        assert!(!html.contains("<script") && !html.contains("http:") && !html.contains("<?xml"));
        assert!(html.contains("a &lt; b") && html.contains("&lt;script&gt;") && html.contains("<svg></svg>"));
    }
}
