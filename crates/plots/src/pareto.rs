//! Which runs no other run beats: throughput for each user against throughput of each GPU.

use crate::PlotError;
use crate::chart::{BELOW, Frame, Ticks};
use crate::rows::{Cell, Row, python_float, python_text};
use crate::scale::{Scale, ScaleKind};
use crate::svg::{Anchor, Drawing, Picture, width};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How far below the best a run may be and still count as not beaten.
const SLACK: f64 = 1e-9;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 640.0;

/// How users and GPUs are counted, and what is written at the runs that are not beaten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ParetoPlot {
    /// The variable with the number of users.
    pub user_count: Option<String>,
    /// The variable with the number of GPUs; without it the product of the parallel sizes.
    pub gpu_count: Option<String>,
    /// Variables written at each run of the frontier.
    pub label_by: Vec<String>,
}

impl Default for ParetoPlot {
    fn default() -> Self {
        Self {
            user_count: Some("max_concurrency".to_owned()),
            gpu_count: None,
            label_by: vec!["max_concurrency".to_owned(), "gpu_count".to_owned()],
        }
    }
}

/// The runs as points, and those among them that no other beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Pareto {
    /// Tokens/s/user and tokens/s/GPU of each run that has users.
    pub points: Vec<(f64, f64)>,
    /// Places in `points`, by rising tokens/s/user.
    pub frontier: Vec<usize>,
    /// Runs left out, since nothing tells how many users they had.
    pub skipped: usize,
    /// The picture; `None` when no point is a number.
    pub picture: Option<Picture>,
}

impl ParetoPlot {
    /// Computes points and frontier and draws them.
    ///
    /// Users are the first that is there of the user variable and `request_rate` (with dashes or
    /// underscores), if that is not 0; else `max_concurrent_requests`. GPUs are the GPU variable if
    /// not 0; else the product of tensor, pipeline and data parallel sizes that are there and not 0.
    ///
    /// # Errors
    ///
    /// [`PlotError`] when there is no run, one lacks `output_throughput` or has a text in its place,
    /// or no run has users.
    pub fn draw(&self, runs: &[Row]) -> Result<Pareto, PlotError> {
        if runs.is_empty() {
            return Err(PlotError::Nothing("there are no results of a sweep"));
        }
        let mut points = Vec::new();
        let mut labels = Vec::new();
        let mut skipped = 0;
        for (run, row) in runs.iter().enumerate() {
            let throughput = number(row, run, &["output_throughput"])?.ok_or_else(|| {
                PlotError::Missing { key: "output_throughput".to_owned(), known: known(row) }
            })?;
            let Some(users) = self.users(row, run)? else {
                skipped += 1;
                continue;
            };
            let gpus = self.gpus(row, run)?;
            points.push((throughput / users, throughput / gpus));
            labels.push(self.label(row, users, gpus, points.last().copied().unwrap_or_default()));
        }
        if points.is_empty() {
            return Err(PlotError::Nothing("no run has both a throughput and a number of users"));
        }
        let numbers = |(x, y): &(f64, f64)| !x.is_nan() && !y.is_nan();
        let kept: Vec<usize> = (0..points.len()).filter(|run| numbers(&points[*run])).collect();
        let labels: Vec<Vec<String>> = kept.iter().map(|run| labels[*run].clone()).collect();
        let points: Vec<(f64, f64)> = kept.iter().map(|run| points[*run]).collect();
        let frontier = frontier(&points);
        let picture = (!points.is_empty()).then(|| picture(&points, &frontier, &labels));
        Ok(Pareto { points, frontier, skipped, picture })
    }

    fn users(&self, row: &Row, run: usize) -> Result<Option<f64>, PlotError> {
        let named = self.user_count.as_deref();
        let candidates: Vec<&str> = named.into_iter().chain(["request_rate"]).collect();
        if let Some(users) = number(row, run, &candidates)?.filter(|users| *users != 0.0) {
            return Ok(Some(users));
        }
        let observed = number(row, run, &["max_concurrent_requests"])?;
        Ok(observed.filter(|users| *users != 0.0))
    }

    fn gpus(&self, row: &Row, run: usize) -> Result<f64, PlotError> {
        let named: Vec<&str> = self.gpu_count.as_deref().into_iter().collect();
        if let Some(gpus) = number(row, run, &named)?.filter(|gpus| *gpus != 0.0) {
            return Ok(gpus);
        }
        let mut gpus = 1.0;
        for keys in [
            ["tensor_parallel_size", "tp"],
            ["pipeline_parallel_size", "pp"],
            ["data_parallel_size", "dp"],
        ] {
            if let Some(size) = number(row, run, &keys)?.filter(|size| *size != 0.0) {
                gpus *= size;
            }
        }
        Ok(gpus)
    }

    /// The variables of a run and those that were computed of it.
    fn label(&self, row: &Row, users: f64, gpus: f64, point: (f64, f64)) -> Vec<String> {
        let value = |key: &String| match key.as_str() {
            "tokens_per_user" => Some(python_float(point.0)),
            "tokens_per_gpu" => Some(python_float(point.1)),
            "user_count_estimate" => Some(python_float(users)),
            "gpu_count" => Some(python_float(gpus)),
            _ => row.get(key).map(|value| python_text(Some(value))),
        };
        let line = |key: &String| value(key).map(|value| format!("{key}={value}"));
        self.label_by.iter().filter_map(line).collect()
    }
}

/// The first variable that is there, with dashes or underscores; `None` if none is, or it is null.
fn number(row: &Row, run: usize, keys: &[&str]) -> Result<Option<f64>, PlotError> {
    let spellings = keys
        .iter()
        .flat_map(|key| [(*key).to_owned(), key.replace('_', "-"), key.replace('-', "_")]);
    for key in spellings {
        let Some(value) = row.get(&key) else { continue };
        return match (Cell::of(Some(value)), value) {
            (Cell::Missing, _) => Ok(None),
            (Cell::Text(text), Value::String(_)) if text.trim().parse::<f64>().is_ok() => {
                Ok(text.trim().parse().ok())
            }
            (cell, value) => match cell.number() {
                Some(number) => Ok(Some(number)),
                None => Err(PlotError::NotANumber { key, run, found: value.to_string() }),
            },
        };
    }
    Ok(None)
}

fn known(row: &Row) -> String {
    let mut keys: Vec<&str> = row.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(", ")
}

/// The places of the points that no other beats in both directions, by rising x.
///
/// From the largest x down (of equal ones from the largest y down) a point stays when its y is no
/// lower than the best so far, less 1e-9. Points must be numbers.
pub fn frontier(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let falling = |one: &usize, two: &usize| {
        let (one, two) = (points[*one], points[*two]);
        two.0.total_cmp(&one.0).then(two.1.total_cmp(&one.1))
    };
    order.sort_by(falling);
    let mut best = f64::NEG_INFINITY;
    order.retain(|place| {
        let stays = points[*place].1 >= best - SLACK;
        if stays {
            best = best.max(points[*place].1);
        }
        stays
    });
    order.reverse();
    order
}

fn picture(points: &[(f64, f64)], frontier: &[usize], labels: &[Vec<String>]) -> Picture {
    let linear = ScaleKind::Linear;
    let x = Scale::covering(linear, points.iter().map(|point| point.0).chain([0.0]), 8);
    let y = Scale::covering(linear, points.iter().map(|point| point.1).chain([0.0]), 7);
    let (x_ticks, y_ticks) = (Ticks::of(&x), Ticks::of(&y));
    let room = y_ticks.room();
    let frame = Frame {
        left: 22.0 + room,
        top: 78.0,
        width: WIDTH - room - 22.0 - 40.0,
        height: HEIGHT - 78.0 - BELOW - 8.0,
    };
    let mut drawing = Drawing::default();
    drawing.text("title", (22.0, 34.0), Anchor::Start, "Throughput for each user and of each GPU");
    let drawn = |place: &usize| linear.places(points[*place].0) && linear.places(points[*place].1);
    let at = |place: usize| (frame.x(x.place(points[place].0)), frame.y(y.place(points[place].1)));
    drawing.mark("run", 0, (30.0, 55.0), 4.5);
    drawing.text("tick", (42.0, 59.0), Anchor::Start, "All runs");
    drawing.path("curve c0", &[(116.0, 55.0), (148.0, 55.0)], 2.0, "");
    drawing.mark("m0", 3, (132.0, 55.0), 4.5);
    drawing.text("tick", (158.0, 59.0), Anchor::Start, "Pareto frontier");
    frame.axes(&mut drawing, (&x_ticks, "Tokens/s/user"), (&y_ticks, "Tokens/s/GPU"));
    for place in (0..points.len()).filter(drawn) {
        drawing.open_with_tip(&labels[place].join(", "));
        drawing.mark("run", 0, at(place), 4.5);
        drawing.close();
    }
    let shown: Vec<usize> = frontier.iter().copied().filter(drawn).collect();
    let line: Vec<(f64, f64)> = shown.iter().map(|place| at(*place)).collect();
    if line.len() > 1 {
        drawing.path("curve c0", &line, 2.0, "");
    }
    let mut taken: Vec<(f64, f64, f64, f64)> = Vec::new();
    for place in shown {
        let here = at(place);
        drawing.open_with_tip(&labels[place].join(", "));
        drawing.mark("m0", 3, here, 5.0);
        drawing.close();
        write_label(&mut drawing, frame, here, &labels[place], &mut taken);
    }
    let description =
        format!("{} runs, {} of them on the Pareto frontier", points.len(), frontier.len());
    drawing.finish((WIDTH, HEIGHT), "Pareto frontier", &description)
}

/// Writes a label beside its point, where no label is yet; nowhere, when there is no such place.
fn write_label(
    drawing: &mut Drawing,
    frame: Frame,
    (x, y): (f64, f64),
    lines: &[String],
    taken: &mut Vec<(f64, f64, f64, f64)>,
) {
    let wide = lines.iter().map(|line| width(line, 12.0)).fold(0.0, f64::max);
    let high = 14.0 * lines.len() as f64;
    let corners = [
        (x + 9.0, y - high - 2.0),
        (x + 9.0, y + 4.0),
        (x - 9.0 - wide, y + 4.0),
        (x - 9.0 - wide, y - high - 2.0),
        (x + 14.0, y - high / 2.0),
    ];
    let free = |(left, top): &(f64, f64)| {
        *left >= frame.left
            && left + wide <= frame.x(1.0) + 36.0
            && *top >= frame.top - 16.0
            && top + high <= frame.y(0.0)
            && taken.iter().all(|other| {
                left + wide < other.0 - 6.0
                    || *left > other.2 + 6.0
                    || top + high < other.1
                    || *top > other.3
            })
    };
    let Some((left, top)) = corners.into_iter().find(free) else { return };
    taken.push((left, top, left + wide, top + high));
    for (index, line) in lines.iter().enumerate() {
        let here = (left, top + 11.0 + 14.0 * index as f64);
        drawing.text("note", here, Anchor::Start, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn rows(runs: Value) -> Vec<Row> {
        serde_json::from_value(runs).unwrap()
    }

    #[test]
    fn users_and_gpus_come_from_the_first_that_tells() {
        let runs = rows(json!([
            {"output_throughput": 100, "max-concurrency": 4, "tp": 2, "dp": 5, "pp": 0},
            {"output_throughput": 100, "request_rate": "inf", "max_concurrent_requests": 10},
            {"output_throughput": 100, "max_concurrency": null, "max_concurrent_requests": 10},
            {"output_throughput": 100, "max_concurrency": 0, "request_rate": 5, "max_concurrent_requests": 20},
            {"output_throughput": "100"},
        ]));
        let drawn = ParetoPlot::default().draw(&runs).unwrap();
        assert_eq!(drawn.points, [(25.0, 10.0), (0.0, 100.0), (10.0, 100.0), (5.0, 100.0)]);
        assert_eq!((drawn.frontier, drawn.skipped), (vec![1, 3, 2, 0], 1));
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        let draw = |runs| ParetoPlot::default().draw(&rows(runs)).unwrap_err();
        assert!(matches!(draw(json!([{"a": 1}])), PlotError::Missing { .. }));
        assert!(matches!(draw(json!([{"output_throughput": "x"}])), PlotError::NotANumber { .. }));
        assert!(matches!(draw(json!([{"output_throughput": 1}])), PlotError::Nothing(_)));
        assert!(matches!(draw(json!([])), PlotError::Nothing(_)));
    }

    proptest! {
        /// Nobody on the frontier is beaten, and who is not on it is.
        #[test]
        fn the_frontier_is_not_beaten(
            points in proptest::collection::vec((0..20u32, 0..20u32), 0..40)
                .prop_map(|points| points.iter().map(|(x, y)| (f64::from(*x), f64::from(*y))).collect::<Vec<_>>()),
        ) {
            let kept = frontier(&points);
            prop_assert!(kept.iter().map(|place| points[*place].0).is_sorted());
            for (place, point) in points.iter().enumerate() {
                // Here equal y with larger x does not beat: the algorithm keeps those.
                let beaten = points.iter().any(|other| other.0 >= point.0 && other.1 > point.1);
                prop_assert_eq!(kept.contains(&place), !beaten, "{:?}", point);
            }
        }
    }
}
