//! Curves to a picture.

use super::curves::{Curve, Facet, Place, Point};
use super::{ALL, Figure, SweepPlot};
use crate::chart::{BELOW, Frame, Ticks, middle, readable};
use crate::rows::python_float;
use crate::scale::Scale;
use crate::svg::{Anchor, COLOURS, Drawing, Picture, shortened, width};

const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];
const MARGIN: f64 = 22.0;
/// Widest legend.
const LEGEND: f64 = 280.0;
/// Most entries of one variable in the legend.
const MOST_ENTRIES: usize = 24;

/// The horizontal axis of all charts.
enum Horizontal {
    Numbers(Scale),
    Names(Vec<String>),
}

impl Horizontal {
    fn of(plot: &SweepPlot, points: &[&Point]) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut numbers = Vec::new();
        for point in points {
            match &point.x {
                Place::Number(number) => numbers.push(*number),
                Place::Name(name) if names.contains(name) => {}
                Place::Name(name) => names.push(name.clone()),
            }
        }
        if names.is_empty() {
            Self::Numbers(Scale::covering(plot.x_scale, numbers, 6))
        } else {
            Self::Names(names)
        }
    }

    fn place(&self, x: &Place) -> f64 {
        match (self, x) {
            (Self::Numbers(scale), Place::Number(number)) => scale.place(*number),
            (Self::Names(names), Place::Name(name)) => {
                let index = names.iter().position(|other| other == name);
                middle(index.unwrap_or(0), names.len())
            }
            _ => 0.0,
        }
    }

    fn ticks(&self) -> Ticks {
        match self {
            Self::Numbers(scale) => Ticks::of(scale),
            Self::Names(names) => Ticks::named(names),
        }
    }
}

/// What colour, dashes and thickness stand for: each variable's name and its values in order.
struct Legend {
    keys: Vec<(String, Vec<String>)>,
}

impl Legend {
    fn of(plot: &SweepPlot, facets: &[Facet]) -> Self {
        let names = match plot.curve_by.len() {
            0 => Vec::new(),
            1..=3 => plot.curve_by.clone(),
            _ => vec!["Curve".to_owned()],
        };
        let keys = names.into_iter().enumerate().map(|(index, name)| {
            let mut values: Vec<String> = Vec::new();
            for curve in facets.iter().flat_map(|facet| &facet.curves) {
                match curve.names.get(index) {
                    Some(value) if !values.contains(value) => values.push(value.clone()),
                    _ => {}
                }
            }
            (name, values)
        });
        Self { keys: keys.collect() }
    }

    /// Colour, shape, dashes and thickness of a curve.
    fn look(&self, curve: &Curve) -> Look {
        let place = |index: usize| {
            let value = curve.names.get(index)?;
            self.keys.get(index)?.1.iter().position(|other| other == value)
        };
        let colour = place(0).unwrap_or(0);
        // From the ninth value on colours come again, with other dashes.
        let style = place(1);
        let shape = style.unwrap_or(colour);
        let dashes = style.unwrap_or(colour / COLOURS);
        let thickness = place(2).map_or(2.0, |size| 1.2 + 1.2 * size.min(4) as f64);
        Look { colour: colour % COLOURS, shape, dashes: DASHES[dashes % DASHES.len()], thickness }
    }

    fn width(&self) -> f64 {
        let texts = self.keys.iter().flat_map(|(name, values)| std::iter::once(name).chain(values));
        let widest = texts.map(|text| width(text, 13.0)).fold(0.0, f64::max);
        if self.keys.is_empty() { 0.0 } else { (widest + 62.0).min(LEGEND) }
    }

    fn draw(&self, drawing: &mut Drawing, left: f64, top: f64) {
        let mut y = top;
        let room = LEGEND - 62.0;
        for (index, (name, values)) in self.keys.iter().enumerate() {
            drawing.text(
                "head",
                (left, y + 12.0),
                Anchor::Start,
                &shortened(name, 14.0, room + 40.0),
            );
            y += 24.0;
            for (value_index, value) in values.iter().take(MOST_ENTRIES).enumerate() {
                let names =
                    (0..=index).map(|key| if key == index { value.clone() } else { String::new() });
                let mut look = self.look(&Curve { names: names.collect(), points: Vec::new() });
                if index > 0 {
                    look.colour = 6; // neither colour is meant
                }
                if index == 2 {
                    look.shape = 0;
                }
                let line = [(left, y + 6.0), (left + 34.0, y + 6.0)];
                drawing.path(&look.line(), &line, look.thickness, look.dashes);
                if index < 2 {
                    drawing.mark(&look.fill(), look.shape, (left + 17.0, y + 6.0), 4.0);
                }
                drawing.text(
                    "tick",
                    (left + 44.0, y + 10.0),
                    Anchor::Start,
                    &shortened(value, 12.0, room),
                );
                y += 20.0;
                if value_index + 1 == MOST_ENTRIES && values.len() > MOST_ENTRIES {
                    let more = format!("and {} more", values.len() - MOST_ENTRIES);
                    drawing.text("note", (left + 44.0, y + 10.0), Anchor::Start, &more);
                    y += 20.0;
                }
            }
            y += 12.0;
        }
    }

    fn height(&self) -> f64 {
        let entries = |values: &Vec<String>| values.len().min(MOST_ENTRIES + 1) as f64;
        self.keys.iter().map(|(_, values)| 36.0 + 20.0 * entries(values)).sum()
    }
}

struct Look {
    colour: usize,
    shape: usize,
    dashes: &'static str,
    thickness: f64,
}

impl Look {
    fn line(&self) -> String {
        format!("curve c{}", self.colour)
    }

    fn fill(&self) -> String {
        format!("m{}", self.colour)
    }
}

/// All charts of a figure with their legend.
pub(super) fn picture(plot: &SweepPlot, figure: &Figure, facets: &[Facet]) -> Picture {
    let unique = |text: fn(&Facet) -> &String| {
        let mut found: Vec<&String> = Vec::new();
        for facet in facets {
            if !found.contains(&text(facet)) {
                found.push(text(facet));
            }
        }
        found
    };
    let (rows, columns) = (unique(|facet| &facet.row), unique(|facet| &facet.column));
    let points: Vec<&Point> =
        facets.iter().flat_map(|facet| &facet.curves).flat_map(|curve| &curve.points).collect();
    let x = Horizontal::of(plot, &points);
    let spread = points.iter().flat_map(|point| {
        let deviation = point.deviation.filter(|_| plot.error_bars).unwrap_or(0.0);
        [point.y - deviation, point.y, point.y + deviation]
    });
    let y = Scale::covering(plot.y_scale, spread, 6);
    let (x_ticks, y_ticks) = (x.ticks(), Ticks::of(&y));
    let legend = Legend::of(plot, facets);

    let height = if plot.height_inches.is_finite() { plot.height_inches } else { 6.4 };
    let height = (height * 96.0).clamp(160.0, 4000.0);
    let (cell_width, title_room) = (height * 1.3, 62.0);
    let heading = 34.0;
    let total_width = MARGIN * 2.0
        + cell_width * columns.len().max(1) as f64
        + if legend.keys.is_empty() { 0.0 } else { legend.width() + 8.0 };
    let total_height = (title_room + height * rows.len().max(1) as f64)
        .max(title_room + heading + legend.height())
        + 10.0;

    let mut drawing = Drawing::default();
    let title = title(plot, figure);
    let shown = shortened(&title, 17.0, total_width - 2.0 * MARGIN);
    drawing.text("title", (MARGIN, 34.0), Anchor::Start, &shown);
    let mut notes = Vec::new();
    if plot.error_bars && points.iter().any(|point| point.deviation.is_some()) {
        notes.push("means of runs; bars are one standard deviation".to_owned());
    }
    if figure.left_out > 0 {
        notes.push(format!("{} runs have no place on these axes", figure.left_out));
    }
    drawing.text("note", (MARGIN, 54.0), Anchor::Start, &notes.join("; "));

    for facet in facets {
        let row = rows.iter().position(|row| **row == facet.row).unwrap_or(0);
        let column = columns.iter().position(|column| **column == facet.column).unwrap_or(0);
        let room = y_ticks.room();
        let frame = Frame {
            left: MARGIN + column as f64 * cell_width + room,
            top: title_room + row as f64 * height + heading,
            width: cell_width - room - 22.0,
            height: height - heading - BELOW,
        };
        let names = [&facet.row, &facet.column].into_iter().filter(|name| *name != ALL);
        let names = names.map(String::as_str).collect::<Vec<_>>().join(" · ");
        let names = shortened(&names, 14.0, frame.width);
        drawing.text("head", (frame.left, frame.top - 12.0), Anchor::Start, &names);
        let (x_label, y_label) = (readable(&plot.x), readable(&plot.y));
        frame.axes(&mut drawing, (&x_ticks, &x_label), (&y_ticks, &y_label));
        for curve in &facet.curves {
            draw_curve(&mut drawing, plot, frame, (&x, &y), curve, &legend.look(curve));
        }
    }
    let left = MARGIN + cell_width * columns.len().max(1) as f64 + 8.0;
    legend.draw(&mut drawing, left, title_room + heading);
    let description = format!("{} charts, {} points", facets.len(), points.len());
    drawing.finish((total_width, total_height), &title, &description)
}

fn title(plot: &SweepPlot, figure: &Figure) -> String {
    let bare = |key: &str| {
        let text = readable(key);
        text.split(" (").next().map(str::to_owned).unwrap_or_default()
    };
    let group = figure.group.iter().map(|(key, value)| format!("{key}={value}"));
    let group = group.collect::<Vec<_>>().join(", ");
    let colon = if group.is_empty() { "" } else { ": " };
    let mut x = bare(&plot.x);
    // `Total` becomes `total`, but `TTFT` stays.
    if x.chars().nth(1).is_some_and(char::is_lowercase)
        && let Some(first) = x.get_mut(..1)
    {
        first.make_ascii_lowercase();
    }
    format!("{} by {x}{colon}{group}", bare(&plot.y))
}

fn draw_curve(
    drawing: &mut Drawing,
    plot: &SweepPlot,
    frame: Frame,
    (x, y): (&Horizontal, &Scale),
    curve: &Curve,
    look: &Look,
) {
    let at = |point: &Point| (frame.x(x.place(&point.x)), frame.y(y.place(point.y)));
    let places: Vec<(f64, f64)> = curve.points.iter().map(at).collect();
    if places.len() > 1 {
        drawing.path(&look.line(), &places, look.thickness, look.dashes);
    }
    for (point, here) in curve.points.iter().zip(places) {
        let deviation = point.deviation.filter(|_| plot.error_bars);
        drawing.open_with_tip(&tip(curve, point, deviation));
        if let Some(deviation) = deviation.filter(|deviation| *deviation > 0.0) {
            let low = (here.0, frame.y(y.clamped(point.y - deviation)));
            let high = (here.0, frame.y(y.clamped(point.y + deviation)));
            let class = format!("{} whisker", look.line());
            drawing.path(&class, &[low, high], 1.4, "");
            for end in [low, high] {
                drawing.path(&class, &[(end.0 - 5.0, end.1), (end.0 + 5.0, end.1)], 1.4, "");
            }
        }
        drawing.mark(&look.fill(), look.shape, here, 4.0);
        drawing.close();
    }
}

/// What is shown when a point is pointed at.
fn tip(curve: &Curve, point: &Point, deviation: Option<f64>) -> String {
    let names = curve.names.join(", ");
    let colon = if names.is_empty() { "" } else { ": " };
    let x = match &point.x {
        Place::Number(number) => python_float(*number),
        Place::Name(name) => name.clone(),
    };
    let y = python_float(point.y);
    let spread = deviation.map_or_else(String::new, |it| format!(" ± {}", python_float(it)));
    format!("{names}{colon}{x}, {y}{spread} (runs: {})", point.runs)
}
