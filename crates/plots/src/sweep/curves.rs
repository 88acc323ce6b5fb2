//! Runs to curves: what is drawn in each chart, before anything has a place on paper.

use super::{ALL, SweepPlot};
use crate::PlotError;
use crate::rows::{Cell, Row, python_text};
use serde_json::Value;

/// Curves by colour only, above so many variables.
const MOST_KEYS: usize = 3;

/// One chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facet {
    pub(super) row: String,
    pub(super) column: String,
    pub(super) curves: Vec<Curve>,
}

/// One curve: its values of the variables that colour, dashes and thickness stand for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) names: Vec<String>,
    pub(super) points: Vec<Point>,
}

/// All runs of a curve with the same x.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: Place,
    /// The mean.
    pub(super) y: f64,
    /// The sample's standard deviation; `None` of a single run.
    pub(super) deviation: Option<f64>,
    pub(super) runs: usize,
}

/// What a curve's runs have at each place.
type Samples = Vec<(Place, Vec<f64>)>;

/// A number, or a name on an axis of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Number(f64),
    Name(String),
}

/// The charts, by row and column in the order of the rows; and how many points have no place.
pub(super) fn facets(plot: &SweepPlot, rows: &[Row]) -> Result<(Vec<Facet>, usize), PlotError> {
    // One text makes an axis of names, on which numbers are names too.
    let names = rows.iter().any(|row| matches!(Cell::of(row.get(&plot.x)), Cell::Text(_)));
    let mut facets: Vec<Facet> = Vec::new();
    let mut samples: Vec<Vec<Samples>> = Vec::new();
    let mut left_out = 0;
    for (run, row) in rows.iter().enumerate() {
        let y = match Cell::of(row.get(&plot.y)) {
            Cell::Missing => continue, // as if the run were not there
            cell => cell.number().ok_or_else(|| PlotError::NotANumber {
                key: plot.y.clone(),
                run,
                found: row.get(&plot.y).map(Value::to_string).unwrap_or_default(),
            })?,
        };
        let x = match Cell::of(row.get(&plot.x)) {
            Cell::Missing => continue,
            _ if names => Place::Name(python_text(row.get(&plot.x))),
            cell => Place::Number(cell.number().unwrap_or(f64::NAN)),
        };
        let x_placed = match &x {
            Place::Number(number) => plot.x_scale.places(*number),
            Place::Name(_) => true,
        };
        if !x_placed || !plot.y_scale.places(y) {
            left_out += 1;
            continue;
        }
        let facet = find(
            &mut facets,
            |facet: &Facet| {
                facet.row == joined(row, &plot.row_by)
                    && facet.column == joined(row, &plot.column_by)
            },
            || Facet {
                row: joined(row, &plot.row_by),
                column: joined(row, &plot.column_by),
                curves: Vec::new(),
            },
        );
        if facet == samples.len() {
            samples.push(Vec::new());
        }
        let (Some(chart), Some(samples)) = (facets.get_mut(facet), samples.get_mut(facet)) else {
            continue;
        };
        let names = curve_names(plot, row);
        let curve = find(
            &mut chart.curves,
            |curve| curve.names == names,
            || Curve { names: names.clone(), points: Vec::new() },
        );
        if curve == samples.len() {
            samples.push(Vec::new());
        }
        let Some(points) = samples.get_mut(curve) else { continue };
        let point = find(points, |(other, _)| *other == x, || (x.clone(), Vec::new()));
        if let Some((_, values)) = points.get_mut(point) {
            values.push(y);
        }
    }
    for (facet, samples) in facets.iter_mut().zip(samples) {
        for (curve, points) in facet.curves.iter_mut().zip(samples) {
            curve.points = points.into_iter().map(|(x, values)| point(x, &values)).collect();
            curve.points.sort_by(|one, two| match (&one.x, &two.x) {
                (Place::Number(one), Place::Number(two)) => one.total_cmp(two),
                _ => std::cmp::Ordering::Equal,
            });
        }
    }
    Ok((facets, left_out))
}

/// The place of the first that fits, put at the end when there is none.
fn find<T>(items: &mut Vec<T>, fits: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    let found = items.iter().position(fits);
    found.unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    })
}

fn joined(row: &Row, keys: &[String]) -> String {
    if keys.is_empty() {
        return ALL.to_owned();
    }
    let parts = keys.iter().map(|key| format!("{key}={}", python_text(row.get(key))));
    parts.collect::<Vec<_>>().join(", ")
}

fn curve_names(plot: &SweepPlot, row: &Row) -> Vec<String> {
    if plot.curve_by.len() > MOST_KEYS {
        return vec![joined(row, &plot.curve_by)];
    }
    plot.curve_by.iter().map(|key| python_text(row.get(key))).collect()
}

fn point(x: Place, values: &[f64]) -> Point {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    Point { x, y: mean, deviation, runs: values.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plot(curve_by: &[&str]) -> SweepPlot {
        let curve_by = curve_by.iter().map(|key| (*key).to_owned()).collect();
        SweepPlot { x: "x".into(), y: "y".into(), curve_by, ..SweepPlot::default() }
    }

    #[test]
    fn runs_at_one_place_are_one_point() {
        let rows: Vec<Row> = serde_json::from_value(json!([
            {"x": 2, "y": 1.0}, {"x": 1, "y": 4.0}, {"x": 2.0, "y": 3.0}, {"x": 3}, {"x": "inf", "y": 1},
        ])).unwrap();
        let (facets, left_out) = facets(&plot(&[]), &rows).unwrap();
        assert_eq!(left_out, 1);
        let wanted = [
            Point { x: Place::Number(1.0), y: 4.0, deviation: None, runs: 1 },
            Point { x: Place::Number(2.0), y: 2.0, deviation: Some(2f64.sqrt()), runs: 2 },
        ];
        assert_eq!(facets[0].curves[0].points, wanted);
        assert_eq!((facets[0].row.as_str(), facets[0].column.as_str()), (ALL, ALL));
    }

    #[test]
    fn a_text_makes_an_axis_of_names() {
        let rows: Vec<Row> =
            serde_json::from_value(json!([{"x": "fp8", "y": 1}, {"x": 16, "y": 2}])).unwrap();
        let (facets, _) = facets(&plot(&[]), &rows).unwrap();
        let places: Vec<_> =
            facets[0].curves[0].points.iter().map(|point| point.x.clone()).collect();
        assert_eq!(places, [Place::Name("fp8".into()), Place::Name("16".into())]);
    }

    #[test]
    fn four_variables_share_the_colour() {
        let rows: Vec<Row> = serde_json::from_value(
            json!([{"x": 1, "y": 1, "a": 1, "b": true, "c": "z", "d": null}]),
        )
        .unwrap();
        let names =
            |keys: &[&str]| facets(&plot(keys), &rows).unwrap().0[0].curves[0].names.clone();
        assert_eq!(names(&["a", "b", "c", "d"]), ["a=1, b=True, c=z, d=None"]);
        assert_eq!(names(&["a", "b", "c"]), ["1", "True", "z"]);
    }
}
