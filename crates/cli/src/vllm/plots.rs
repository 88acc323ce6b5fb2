//! The pictures of a run: its timeline and the lengths of its requests.

use servebench_metrics::Measured;
use servebench_plots::{LengthStatistics, Timeline, TimelineOptions, TimelineRequest};
use servebench_report::vllm::VllmReport;

/// `--timeline-itl-thresholds`: two numbers of milliseconds, the first no more than the second.
pub(super) fn thresholds(text: &str) -> Result<[f64; 2], String> {
    let wanted = || format!("expected two numbers of milliseconds as in 25,50, got '{text}'");
    let numbers: Vec<f64> = text
        .split(',')
        .map(|part| part.trim().parse().map_err(|_| wanted()))
        .collect::<Result<_, _>>()?;
    match numbers[..] {
        [low, high] if low >= 0.0 && high.is_finite() && low <= high => Ok([low, high]),
        _ => Err(wanted()),
    }
}

/// The course of every request as a page; `None` of no requests.
pub(super) fn timeline(report: &VllmReport<'_>, thresholds_ms: [f64; 2]) -> Option<String> {
    let info = &report.info;
    let details = [
        ("Model", info.model_id.clone()),
        ("Backend", info.backend.clone()),
        ("Date", info.date.clone()),
        ("Requests", report.requests.len().to_string()),
    ];
    let details = details.map(|(name, value)| (name.to_owned(), value));
    let mut timeline = Timeline::new(TimelineOptions {
        title: format!("Request timeline: {}", info.model_id),
        details: details.into(),
        thresholds_ms,
    });
    for request in report.requests {
        let record = request.record;
        let bounds = request.ttft_bounds();
        let exact = request.exact_itl_share(report.base.itl_rule).unwrap_or(1.0);
        let gaps = request.itls(report.base.itl_rule);
        let itls: Vec<f64> = gaps.flat_map(servebench_metrics::Gap::samples).collect();
        timeline.push(&TimelineRequest {
            start_s: record.dispatched.as_secs_f64(),
            ttft_s: request.ttft(),
            ttft_uncertainty_s: bounds.map_or(0.0, |(low, high)| high - low),
            inexact_itls: ((1.0 - exact) * itls.len() as f64).round() as u64,
            itls_s: itls.into(),
            prompt_tokens: request.prompt_tokens(),
            output_tokens: output_tokens(request),
            error: record.reply.failure.as_ref().map(|failure| failure.to_string().into()),
        });
    }
    (!timeline.is_empty()).then(|| timeline.into_html())
}

/// How long prompts and answers were, as they were measured, as SVG.
pub(super) fn lengths(report: &VllmReport<'_>) -> String {
    let tokens = report.requests.iter();
    let tokens = tokens.map(|request| (request.prompt_tokens(), output_tokens(request))).collect();
    let title = format!("Token lengths: {}", report.info.model_id);
    LengthStatistics { title, tokens }.picture().to_svg()
}

fn output_tokens(request: &Measured<'_>) -> u64 {
    if request.record.is_success() { request.output_count().tokens } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_two_numbers_in_order() {
        assert_eq!(thresholds("25,50"), Ok([25.0, 50.0]));
        assert_eq!(thresholds(" 0 , 0.5"), Ok([0.0, 0.5]));
        for text in ["", "25", "25,50,75", "50,25", "a,b", "-1,5", "1,inf", "nan,1", "1,nan"] {
            let said = thresholds(text).unwrap_err();
            assert!(said.contains("25,50"), "{text}: {said}");
        }
    }
}
