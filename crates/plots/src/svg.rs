//! Pictures as SVG text.

use crate::escape::markup;
use std::fmt::Write as _;

/// Colours and fonts of every picture; lighter lines and text where the reader prefers dark.
pub(crate) const STYLE: &str = include_str!("page/picture.css");

/// How many colours there are for curves.
pub(crate) const COLOURS: usize = 8;

/// A finished picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: f64,
    height: f64,
    title: String,
    description: String,
    body: String,
}

impl Picture {
    /// The picture as an SVG file.
    pub fn to_svg(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
            self.element(&format!("<style>{STYLE}</style>\n"))
        )
    }

    /// The picture as an element of a page that has [`STYLE`] already.
    pub(crate) fn inline(&self) -> String {
        self.element("")
    }

    fn element(&self, style: &str) -> String {
        let (width, height) = (place(self.width), place(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{style}\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            markup(&self.title),
            markup(&self.description),
            self.body,
        )
    }
}

/// How a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn. Classes are those of [`STYLE`].
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    body: String,
}

impl Drawing {
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(place);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    pub(crate) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(place);
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// A line through all points; `thickness` and `dashes` as SVG has them.
    pub(crate) fn path(
        &mut self,
        class: &str,
        points: &[(f64, f64)],
        thickness: f64,
        dashes: &str,
    ) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(data, "{command}{} {}", place(*x), place(*y));
        }
        let thickness = place(thickness);
        let dashes = if dashes.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{dashes}\"")
        };
        self.put(format_args!(
            "<path class=\"{class}\" stroke-width=\"{thickness}\"{dashes} d=\"{data}\"/>"
        ));
    }

    /// The mark of a curve: a shape of its own for each of the first eight.
    pub(crate) fn mark(&mut self, class: &str, shape: usize, (x, y): (f64, f64), size: f64) {
        let polygon = |corners: &[(f64, f64)]| {
            let points: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{},{}", place(x + dx * size), place(y + dy * size)))
                .collect();
            format!("<polygon class=\"{class}\" points=\"{}\"/>", points.join(" "))
        };
        let element = match shape % COLOURS {
            0 => {
                let [x, y, size] = [x, y, size].map(place);
                format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{size}\"/>")
            }
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
            4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            5 => polygon(&[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ]),
            6 => polygon(&[(1.2, 0.0), (-0.8, 1.1), (-0.8, -1.1)]),
            _ => polygon(&[(0.0, -1.2), (1.15, -0.35), (0.7, 1.0), (-0.7, 1.0), (-1.15, -0.35)]),
        };
        self.put(format_args!("{element}"));
    }

    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let [x, y] = [x, y].map(place);
        let text = markup(text);
        let anchor = anchor.attribute();
        self.put(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// Text that reads upwards, its middle at this place.
    pub(crate) fn text_upwards(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let [x, y] = [x, y].map(place);
        let (text, anchor) = (markup(text), Anchor::Middle.attribute());
        self.put(format_args!(
            "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\"{anchor}>{text}</text>"
        ));
    }

    /// What follows, up to [`Drawing::close`], shows this text when pointed at.
    pub(crate) fn open_with_tip(&mut self, tip: &str) {
        self.put(format_args!("<g><title>{}</title>", markup(tip)));
    }

    pub(crate) fn close(&mut self) {
        self.put(format_args!("</g>"));
    }

    pub(crate) fn finish(self, size: (f64, f64), title: &str, description: &str) -> Picture {
        Picture {
            width: size.0,
            height: size.1,
            title: title.to_owned(),
            description: description.to_owned(),
            body: self.body,
        }
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

impl Anchor {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => " text-anchor=\"middle\"",
            Self::End => " text-anchor=\"end\"",
        }
    }
}

/// A coordinate: two decimals at most.
fn place(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// About how wide a text is at this font size: enough to keep room for it.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | '|' | '!' | '.' | ',' | ':' | ';' | '\'' | ' ' | 'f' | 't' | 'r'
            | '(' | ')' | 'I' | '/' => 0.34,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
            'A'..='Z' | '=' | '+' | '<' | '>' | '_' => 0.68,
            character if character as u32 > 0x2e80 => 1.0,
            _ => 0.58,
        })
        .sum();
    ems * size
}

/// The text, cut where it would be wider than `room`.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        if width(&short, size) > room - size {
            short.pop();
            break;
        }
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, -0.001, 2.345_6, 100.5].map(place), ["1", "0", "2.35", "100.5"]);
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "a".repeat(100);
        let short = shortened(&long, 12.0, 100.0);
        assert!(short.ends_with('…') && width(&short, 12.0) <= 100.0, "{short}");
        assert_eq!(shortened("abc", 12.0, 100.0), "abc");
    }
}
