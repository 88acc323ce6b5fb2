//! Writes one of each picture, of made-up runs, to a folder: `gallery FOLDER`.

use servebench_plots::{
    LengthStatistics, ParetoPlot, Row, ScaleKind, SweepPlot, Timeline, TimelineOptions,
    TimelineRequest, page,
};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// Made-up numbers between 0 and 1, always the same ones.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// With mean 1, seldom much more.
    fn waiting(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("timeline-200.html"), timeline(200, 20.0))?;
    fs::write(folder.join("timeline-100000.html"), timeline(100_000, 150.0))?;
    let lengths = lengths().picture();
    fs::write(folder.join("lengths.svg"), lengths.to_svg())?;
    let runs = runs();
    let mut pictures = vec![lengths];
    for (name, plot) in sweeps() {
        for figure in plot.figures(&runs)? {
            let Some(picture) = figure.picture else { continue };
            fs::write(folder.join(format!("{name}-{}.svg", figure.stem)), picture.to_svg())?;
            pictures.push(picture);
        }
    }
    if let Some(picture) = ParetoPlot::default().draw(&runs)?.picture {
        fs::write(folder.join("pareto.svg"), picture.to_svg())?;
        pictures.push(picture);
    }
    fs::write(folder.join("pictures.html"), page("Pictures", &[], &pictures))?;
    Ok(())
}

fn timeline(count: u64, rate: f64) -> String {
    let mut noise = Noise(count);
    let mut start_s = 0.0;
    let details =
        [("Model", "example-7b"), ("Backend", "openai-chat"), ("Request rate", "Poisson")];
    let mut timeline = Timeline::new(TimelineOptions {
        details: details.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..TimelineOptions::default()
    });
    for index in 0..count {
        start_s += noise.waiting() / rate;
        let output_tokens = 20 + (noise.waiting() * 60.0) as u64;
        let busy = 1.0 + 0.8 * (start_s * 0.7).sin();
        let gap = |noise: &mut Noise| {
            let stall = if noise.next() < 0.012 { 0.12 * noise.next() } else { 0.0 };
            0.014 + 0.009 * busy * noise.waiting() + stall
        };
        let itls: Vec<f64> = (1..output_tokens).map(|_| gap(&mut noise)).collect();
        let refused = noise.next() < 0.01;
        timeline.push(&TimelineRequest {
            start_s,
            ttft_s: (!refused).then(|| 0.08 + 0.15 * busy * noise.waiting()),
            ttft_uncertainty_s: if index % 17 == 0 { 0.02 } else { 0.0 },
            itls_s: if refused { Vec::new() } else { itls }.into(),
            inexact_itls: index % 17 / 16,
            prompt_tokens: 64 + (noise.waiting() * 400.0) as u64,
            output_tokens: if refused { 0 } else { output_tokens },
            error: refused.then(|| "503 Service Unavailable: queue is full".into()),
        });
    }
    timeline.into_html()
}

fn lengths() -> LengthStatistics {
    let mut noise = Noise(7);
    let mut length = |mean: f64| (mean * (0.3 + 0.7 * noise.waiting())) as u64;
    let tokens = (0..1000).map(|_| (length(400.0), length(180.0))).collect();
    LengthStatistics { title: "Token lengths of 1000 requests, sharegpt".to_owned(), tokens }
}

fn runs() -> Vec<Row> {
    let mut noise = Noise(3);
    let mut runs = Vec::new();
    for tp in [1_u32, 2, 4] {
        for quantization in ["none", "fp8"] {
            for concurrency in [1_u32, 2, 4, 8, 16, 32, 64, 128] {
                for run in 0..3 {
                    let speed =
                        f64::from(tp).powf(0.8) * if quantization == "fp8" { 1.4 } else { 1.0 };
                    let users = f64::from(concurrency);
                    let jitter = 1.0 + 0.1 * (noise.next() - 0.5);
                    let throughput = 60.0 * users * speed / (1.0 + users / (30.0 * speed)) * jitter;
                    let ttft = (40.0 + 6.0 * users) / speed * (1.0 + 0.25 * (noise.next() - 0.5));
                    let row = serde_json::json!({
                        "run_number": run, "tensor_parallel_size": tp, "quantization": quantization,
                        "max_concurrency": concurrency, "output_throughput": throughput,
                        "total_token_throughput": throughput * 3.0, "median_ttft_ms": ttft,
                    });
                    runs.extend(row.as_object().cloned());
                }
            }
        }
    }
    runs
}

fn sweeps() -> Vec<(&'static str, SweepPlot)> {
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let one = SweepPlot {
        curve_by: keys(&["tensor_parallel_size", "quantization"]),
        ..SweepPlot::default()
    };
    let logarithmic = SweepPlot {
        x: "max_concurrency".to_owned(),
        y: "output_throughput".to_owned(),
        x_scale: ScaleKind::Log,
        y_scale: ScaleKind::Log,
        column_by: keys(&["quantization"]),
        curve_by: keys(&["tensor_parallel_size"]),
        height_inches: 4.0,
        ..SweepPlot::default()
    };
    let named = SweepPlot {
        x: "quantization".to_owned(),
        curve_by: keys(&["max_concurrency"]),
        row_by: keys(&["tensor_parallel_size"]),
        height_inches: 3.0,
        ..SweepPlot::default()
    };
    vec![("curves", one), ("facets", logarithmic), ("names", named)]
}
