//! Bodies of the fuzz targets: any bytes in, no panic, and what comes out keeps the promises.

use crate::rows::Row;
use crate::{Bin, Filter, LengthStatistics, ParetoPlot, ScaleKind, SweepPlot};

/// Bytes as `--filter-by` and `--bin-by`, divided by a line feed.
pub fn plot_expressions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (filters, bins) = text.split_once('\n').unwrap_or((text, text));
    let runs: Vec<Row> = [(1.0, "a"), (2.5, "b")]
        .map(|(number, name)| {
            let row = [("a", number.into()), ("b", name.into()), ("c", true.into())];
            row.map(|(key, value): (&str, serde_json::Value)| (key.to_owned(), value))
                .into_iter()
                .collect()
        })
        .to_vec();
    if let Ok(filters) = Filter::list(filters) {
        for filter in filters {
            let kept = filter.apply(runs.iter().collect()).map_or(0, |kept| kept.len());
            assert!(kept <= runs.len(), "a filter added runs");
        }
    }
    if let Ok(bins) = Bin::list(bins) {
        for bin in bins {
            let mut runs = runs.clone();
            if bin.apply(&mut runs).is_ok() {
                let place = runs[1].get(&bin.key).and_then(serde_json::Value::as_f64);
                // A multiple of the size that is no further away than the size.
                assert!(
                    place.is_none_or(|place| (place - 2.5).abs() <= bin.size.abs().max(2.5)),
                    "{bin:?} {place:?}"
                );
            }
        }
    }
}

/// Bytes as the summary file of a sweep, drawn in every way.
pub fn sweep_summary(bytes: &[u8]) {
    let Ok(runs) = serde_json::from_slice::<Vec<Row>>(bytes) else { return };
    for scale in [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Sqrt] {
        let mut keys: Vec<String> = runs.iter().flat_map(|row| row.keys().cloned()).collect();
        keys.dedup();
        keys.truncate(6);
        let key = |place: usize| keys.get(place).cloned().unwrap_or_default();
        let plot = SweepPlot {
            x: key(0),
            y: key(1),
            curve_by: keys.iter().skip(2).take(3).cloned().collect(),
            column_by: keys.iter().skip(5).cloned().collect(),
            x_scale: scale,
            y_scale: scale,
            ..SweepPlot::default()
        };
        for picture in plot.figures(&runs).into_iter().flatten().filter_map(|figure| figure.picture)
        {
            assert!(!picture.to_svg().contains("NaN"), "a place that is none");
        }
    }
    if let Ok(pareto) = ParetoPlot::default().draw(&runs) {
        assert!(pareto.frontier.len() <= pareto.points.len(), "points came from nowhere");
    }
    let tokens = runs.iter().map(|row| (row.len() as u64, bytes.len() as u64)).collect();
    let statistics =
        LengthStatistics { title: String::from_utf8_lossy(bytes).into_owned(), tokens };
    assert!(!statistics.picture().to_svg().contains("NaN"), "a place that is none");
}
