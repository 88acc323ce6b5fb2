//! Pages in a real browser: Chromium without a window, where the machine has it.

use serde_json::json;
use servebench_cli::{Code, Environment, Io};
use servebench_plots::{Timeline, TimelineOptions, TimelineRequest};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the browser is called on one system or another.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser, if there is one.
fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut places =
        std::env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    places.find(|place| place.is_file())
}

/// The page as it is after its scripts have run; `None`, and a line that says so, without a browser.
#[expect(clippy::print_stderr, reason = "a test that cannot run here says so")]
pub(crate) fn shown(page: &Path) -> Option<String> {
    let Some(browser) = browser() else {
        eprintln!("skipped: none of {} is on this machine", NAMES.join(", "));
        return None;
    };
    let profile = tempfile::tempdir().expect("a folder");
    let mut url = std::ffi::OsString::from("file://");
    url.push(page.canonicalize().expect("a page"));
    let output = Command::new("timeout") // a browser that hangs must not hang the tests
        .arg("120")
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .expect("a browser that starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the browser ended with {}: {errors}", output.status);
    Some(String::from_utf8(output.stdout).expect("a page in UTF-8"))
}

/// What a timeline's script says of itself: a number that it sets on the page's body when it has drawn.
pub(crate) fn drawn(page: &str, what: &str) -> Option<u64> {
    let body = page.split_once("<body")?.1.split_once('>')?.0;
    body.split_once(&format!("data-{what}=\""))?.1.split_once('"')?.0.parse().ok()
}

#[test]
fn a_timeline_shows_every_request() {
    let mut timeline = Timeline::new(TimelineOptions {
        title: "</title><script>document.title = 'wrong'</script>".to_owned(),
        ..TimelineOptions::default()
    });
    for index in 0..200 {
        let failed = index % 50 == 7;
        let itls = vec![0.01, 0.03, f64::from(index) * 0.001];
        timeline.push(&TimelineRequest {
            // Not in order, and far from zero.
            start_s: 1e6 + f64::from(index * 37 % 200) * 0.01,
            ttft_s: (!failed).then_some(0.1),
            itls_s: if failed { Vec::new() } else { itls }.into(),
            error: failed.then(|| "</script>".into()),
            ..TimelineRequest::default()
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.timeline.html");
    let html = timeline.into_html();
    assert_eq!(drawn(&html, "requests"), None, "said before anything is drawn");
    std::fs::write(&page, html).unwrap();

    let Some(page) = shown(&page) else { return };
    assert_eq!(drawn(&page, "requests"), Some(200), "{page}");
    assert_eq!((drawn(&page, "failed"), drawn(&page, "gaps")), (Some(4), Some(588)));
    assert!(page.contains("25 ms ≤ ITL &lt; 50 ms"), "no legend");
    assert!(page.contains("Timeline of 200 requests over 2."), "no description");
}

/// Runs `bench-vllm` in this process, which must go well.
fn done(words: &[&str]) {
    let (io, captured) = Io::captured();
    let words = words.iter().map(Into::into).collect();
    let ended = bench_vllm::run(words, &Environment::default(), &io);
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{}{}", captured.out(), captured.err());
}

#[test]
fn pictures_are_read_as_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let words = ["serve", "--simulate", "--num-prompts", "30", "--output-len", "6"];
    let to = ["--plot-dataset-stats", "--result-dir", place, "--result-filename", "a.json"];
    done(&[&words[..], &to, &["--disable-tqdm"]].concat());
    for users in [1, 2, 4] {
        let runs = json!([{"max_concurrency": users, "output_throughput": 10 * users,
            "total_token_throughput": 20 * users, "median_ttft_ms": 5 + users}]);
        let run = folder.path().join(format!("BENCH--max_concurrency={users}"));
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("summary.json"), runs.to_string()).unwrap();
    }
    done(&["sweep", "plot", place]);
    done(&["sweep", "plot_pareto", place]);
    for (picture, words) in [
        ("a.dataset_stats.svg", "of 30 requests"),
        ("FIGURE.svg", "Total token throughput"),
        ("pareto/PARETO.svg", "Tokens/s/GPU"),
    ] {
        let Some(shown) = shown(&folder.path().join(picture)) else { return };
        // What is no XML is shown up to where it ends, below a message.
        assert!(shown.contains("</svg>") && !shown.contains("parsererror"), "{picture}: {shown}");
        assert!(shown.contains(words), "{picture} has no `{words}`: {shown}");
    }
}
