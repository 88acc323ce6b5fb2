//! The Markdown report.

use super::result::CaseResult;
use servebench_report::percent_g;

/// What the report says beside the results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading<'a> {
    pub(super) input_lens: &'a [u32],
    pub(super) output_lens: &'a [u32],
    pub(super) cache_hit_rate: f64,
    /// Dollars for an hour of all accelerators of the server.
    pub(super) hourly_cost: f64,
    /// Whether prompts may stop early: then the columns of the steady window are shown.
    pub(super) may_stop: bool,
    /// Whether there was a profile of each case.
    pub(super) profiled: bool,
}

/// Share of the prompt speed that a loaded server is taken to reach, in its cost.
const INPUT_USE: f64 = 0.7;

/// A sentence on the sweep, and a table of the results by input length.
pub(super) fn report(heading: &Heading<'_>, results: &[CaseResult]) -> String {
    let (inputs, outputs) = (heading.input_lens, heading.output_lens);
    let hits = if heading.cache_hit_rate > 0.0 {
        format!(" Cache hit rate: {:.1}%.", heading.cache_hit_rate * 100.0)
    } else {
        String::new()
    };
    let mut sorted: Vec<&CaseResult> = results.iter().collect();
    sorted.sort_by_key(|result| result.input_len);
    let columns = columns(heading);
    let rows: Vec<Vec<String>> = sorted
        .iter()
        .map(|result| columns.iter().map(|(_, cell)| cell(result, heading)).collect())
        .collect();
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let table = table(&heads, &rows);
    format!("\nInput lens: {inputs:?}. Output lens: {outputs:?}.{hits}\n{table}\n")
}

type Cell = fn(&CaseResult, &Heading<'_>) -> String;

fn columns(heading: &Heading<'_>) -> Vec<(&'static str, Cell)> {
    let mut columns: Vec<(&str, Cell)> = vec![
        ("batch size", |result, _| result.batch_size.to_string()),
        ("input len", |result, _| result.input_len.to_string()),
        ("latency (s)", |result, _| two(Some(result.figures.latency))),
        ("input throughput (tok/s)", |result, _| two(result.figures.input_throughput)),
        ("output throughput (tok/s)", |result, _| two(result.figures.output_throughput)),
        ("acc length", |result, _| two(result.acc_length.filter(|length| *length > 0.0))),
        ("ITL (ms)", |result, _| two(itl_ms(result, result.figures.output_throughput))),
        ("input cost ($/1M)", |result, heading| {
            let speed = result.figures.input_throughput.map(|speed| speed * INPUT_USE);
            two(cost(speed, heading))
        }),
        ("output cost ($/1M)", |result, heading| {
            two(cost(result.figures.output_throughput, heading))
        }),
        ("cache hit rate", |result, _| match result.cache_hit_rate {
            Some(rate) => format!("{rate:.4}"),
            None => "n/a".into(),
        }),
    ];
    if heading.may_stop {
        columns.extend::<[(&str, Cell); 3]>([
            ("steady output throughput (tok/s)", |result, _| {
                two(result.figures.steady.map(|steady| steady.output_throughput))
            }),
            ("steady ITL (ms)", |result, _| {
                let speed = result.figures.steady.map(|steady| steady.output_throughput);
                two(itl_ms(result, speed))
            }),
            ("early stops", |result, _| {
                format!("{}/{}", result.figures.early_stopped.unwrap_or(0), result.batch_size)
            }),
        ]);
    }
    if heading.profiled {
        columns.push(("profile", |result, _| match &result.profile_folder {
            Some(folder) => format!("[Profile]({folder})"),
            None => "n/a".into(),
        }));
    }
    columns
}

fn two(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".into(), |value| format!("{value:.2}"))
}

fn itl_ms(result: &CaseResult, speed: Option<f64>) -> Option<f64> {
    let speed = speed.filter(|speed| *speed > 0.0)?;
    Some(1000.0 * f64::from(result.batch_size) / speed)
}

/// Dollars for a million tokens at this speed.
fn cost(speed: Option<f64>, heading: &Heading<'_>) -> Option<f64> {
    let speed = speed.filter(|speed| *speed > 0.0)?;
    Some(1e6 / speed / 3600.0 * heading.hourly_cost)
}

/// A table as Python's `tabulate` lays out its `github` format, which upstream prints: columns of
/// numbers are written with six significant digits and aligned at their points, others as they are.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    /// Room that a head has beside its text.
    const HEAD_ROOM: usize = 2;
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (at, head) in heads.iter().enumerate() {
        let cells: Vec<&str> = rows.iter().map(|row| row[at].as_str()).collect();
        let room = head.len() + HEAD_ROOM;
        columns.push(if cells.iter().all(|cell| is_number(cell)) {
            let cells = numbers(&cells);
            let width = cells.iter().map(String::len).max().unwrap_or(0).max(room);
            let padded = cells.iter().map(|cell| format!("{cell:>width$}"));
            std::iter::once(format!("{head:>width$}")).chain(padded).collect()
        } else {
            let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(room);
            let padded = cells.iter().map(|cell| format!("{cell:<width$}"));
            std::iter::once(format!("{head:<width$}")).chain(padded).collect()
        });
    }
    let line = |at: usize| {
        let cells: Vec<&str> = columns.iter().map(|column| column[at].as_str()).collect();
        format!("| {} |", cells.join(" | "))
    };
    let rule: Vec<String> =
        columns.iter().map(|column| "-".repeat(column[0].chars().count() + 2)).collect();
    let mut lines = vec![line(0), format!("|{}|", rule.join("|"))];
    lines.extend((1..=rows.len()).map(line));
    lines.join("\n")
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

/// Numbers as a column shows them: whole ones as they are, else six digits, their points in line.
fn numbers(cells: &[&str]) -> Vec<String> {
    if cells.iter().all(|cell| cell.parse::<i64>().is_ok()) {
        return cells.iter().map(|cell| (*cell).to_owned()).collect();
    }
    let short: Vec<String> =
        cells.iter().map(|cell| percent_g(cell.parse().unwrap_or(0.0))).collect();
    // Places behind the point, the point itself counted: none where there is neither point nor exponent.
    let behind = |cell: &String| match cell.find('.').or_else(|| cell.find('e')) {
        Some(place) => cell.len() - place,
        None => 0,
    };
    let most = short.iter().map(behind).max().unwrap_or(0);
    short.iter().map(|cell| format!("{cell}{}", " ".repeat(most - behind(cell)))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Figures, Steady};
    use super::*;

    fn result(batch_size: u32, input_len: u32, output: f64) -> CaseResult {
        CaseResult {
            batch_size,
            input_len,
            output_len: 16,
            figures: Figures {
                latency: 0.9,
                last_ttft: 0.25,
                input_throughput: Some(15_856.18),
                output_throughput: Some(output),
                early_stopped: Some(1),
                steady: Some(Steady { output_throughput: 250.0, window: 0.5 }),
                ..Figures::default()
            },
            acc_length: None,
            ..CaseResult::default()
        }
    }

    const HEADING: Heading<'_> = Heading {
        input_lens: &[1024, 256],
        output_lens: &[16],
        cache_hit_rate: 0.0,
        hourly_cost: 2.0,
        may_stop: false,
        profiled: false,
    };

    #[test]
    fn the_report_is_upstreams() {
        let results = [result(1, 1024, 100.0), result(8, 256, 1_234_567.89)];
        let want = "
Input lens: [1024, 256]. Output lens: [16].
|   batch size |   input len |   latency (s) |   input throughput (tok/s) |   output throughput (tok/s) | acc length   |   ITL (ms) |   input cost ($/1M) |   output cost ($/1M) | cache hit rate   |
|--------------|-------------|---------------|----------------------------|-----------------------------|--------------|------------|---------------------|----------------------|------------------|
|            8 |         256 |           0.9 |                    15856.2 |                 1.23457e+06 | n/a          |       0.01 |                0.05 |                 0    | n/a              |
|            1 |        1024 |           0.9 |                    15856.2 |               100           | n/a          |      10    |                0.05 |                 5.56 | n/a              |
";
        assert_eq!(report(&HEADING, &results), want);
    }

    #[test]
    fn more_columns_come_with_early_stops_and_profiles() {
        let mut first = result(4, 256, 200.0);
        first.profile_folder = Some("/tmp/p/1.5".into());
        first.cache_hit_rate = Some(0.5);
        first.acc_length = Some(2.5);
        let heading = Heading { cache_hit_rate: 0.4, may_stop: true, profiled: true, ..HEADING };
        let text =
            report(&heading, &[first, CaseResult { batch_size: 2, ..CaseResult::default() }]);
        let mut lines = text.lines().skip(1);
        let said = "Input lens: [1024, 256]. Output lens: [16]. Cache hit rate: 40.0%.";
        assert_eq!(lines.next(), Some(said));
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let heads = cells(lines.next().expect("heads"));
        assert_eq!(
            heads[10..],
            ["steady output throughput (tok/s)", "steady ITL (ms)", "early stops", "profile"]
        );
        let last = cells(lines.nth(2).expect("two rows"));
        // A column with a text in it is text: two decimals.
        assert_eq!(last[4..7], ["200.00", "2.50", "20.00"]);
        assert_eq!(last[9..], ["0.5000", "250.00", "16.00", "1/4", "[Profile](/tmp/p/1.5)"]);
    }

    #[test]
    fn points_stand_in_line() {
        assert_eq!(numbers(&["0.90", "12.25", "100.00"]), ["0.9 ", "12.25", "100   "]);
        assert_eq!(numbers(&["1", "20"]), ["1", "20"]);
        assert_eq!(numbers(&["1234567.89", "1.00"]), ["1.23457e+06", "1          "]);
    }
}
