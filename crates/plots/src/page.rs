//! Self-contained HTML pages.
//!
//! Every page carries a content security policy that allows its own script and style, by their
//! hashes, and nothing else: no request leaves it, and no text from outside could run.

use crate::escape::{markup, script_json};
use crate::svg::Picture;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page/page.css");
const TIMELINE_STYLE: &str = include_str!("page/timeline.css");
const TIMELINE_SCRIPT: &str = include_str!("page/timeline.js");
const TIMELINE_BODY: &str = include_str!("page/timeline.html");

/// The timeline's page; `head` is what its script reads.
pub(crate) fn timeline(title: &str, details: &[(String, String)], head: &impl Serialize) -> String {
    let style = format!("{STYLE}{TIMELINE_STYLE}");
    // Numbers, booleans and strings only: this cannot fail.
    let json = serde_json::to_string(head).unwrap_or_default();
    let mut page = opening(title, &style, Some(TIMELINE_SCRIPT));
    heading(&mut page, title, details);
    page.push_str(TIMELINE_BODY);
    let data = script_json(&json);
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{TIMELINE_SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

/// Pictures below one another on one page that needs nothing from outside.
pub fn page(title: &str, details: &[(String, String)], pictures: &[Picture]) -> String {
    let style = format!("{STYLE}{}", crate::svg::STYLE);
    let mut page = opening(title, &style, None);
    heading(&mut page, title, details);
    page.push_str("<main>\n");
    for picture in pictures {
        page.push_str("<figure>\n");
        page.push_str(&picture.inline());
        page.push_str("</figure>\n");
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn opening(title: &str, style: &str, script: Option<&str>) -> String {
    let script = script.map_or_else(|| "'none'".to_owned(), source);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src {script}; style-src {}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n",
        source(style),
        markup(title),
    )
}

fn heading(page: &mut String, title: &str, details: &[(String, String)]) {
    let _ = writeln!(page, "<header>\n<h1>{}</h1>", markup(title));
    if !details.is_empty() {
        page.push_str("<dl class=\"details\">\n");
        for (name, value) in details {
            let (name, value) = (markup(name), markup(value));
            let _ = writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        page.push_str("</dl>\n");
    }
    page.push_str("</header>\n");
}

/// An inline text as a policy names it.
fn source(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}
