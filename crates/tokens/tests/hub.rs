//! The real download code against a small hub on loopback.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod mirror;

use mirror::{Answer, COMMIT, Mirror};
use servebench_tokens::{Hub, HubConfig, RepoKind, Tokenizer, TokensError};
use std::error::Error as _;
use std::sync::{Arc, Mutex};

const REPO: &str = "org/model";
const TINY: &str = r#"{"version": "1.0", "added_tokens": [],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}"#;

fn hub(mirror: &Mirror, cache: &tempfile::TempDir) -> Hub {
    let config = HubConfig { endpoint: mirror.endpoint(), ..HubConfig::new(cache.path()) };
    Hub::new(config)
}

fn offline(cache: &tempfile::TempDir) -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new(cache.path()) })
}

fn cache() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_tokenizer_is_downloaded_once_into_pythons_layout() {
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::file(TINY))]);
    let cache = cache();
    let first = Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap();
    assert_eq!(first.encode("aab", false).unwrap(), [0, 2]);
    let root = cache.path().join("models--org--model");
    assert_eq!(std::fs::read_to_string(root.join("refs/main")).unwrap(), COMMIT);
    let snapshot = root.join("snapshots").join(COMMIT).join("tokenizer.json");
    let blob = snapshot.canonicalize().unwrap();
    assert_eq!(blob.parent().unwrap(), root.join("blobs").canonicalize().unwrap());
    assert!(root.join(".no_exist").join(COMMIT).join("tokenizer_config.json").exists());

    // Neither what is there nor what is known not to be there is asked for again.
    let asked = mirror.requests();
    Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap();
    assert_eq!(mirror.requests(), asked);
    Tokenizer::load(REPO, &offline(&cache)).unwrap();
}

#[test]
fn a_cache_that_python_filled_is_used() {
    let cache = cache();
    let root = cache.path().join("models--org--model");
    let snapshot = root.join("snapshots").join(COMMIT);
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(root.join("refs")).unwrap();
    std::fs::write(root.join("refs/main"), COMMIT).unwrap();
    std::fs::write(snapshot.join("tokenizer.json"), TINY).unwrap();
    std::fs::write(snapshot.join("tokenizer_config.json"), r#"{"bos_token": "a"}"#).unwrap();
    let tokenizer = Tokenizer::load(REPO, &offline(&cache)).unwrap();
    assert_eq!(tokenizer.bos_token(), Some("a"));
    // The files may lie in a full cache while the hub cannot be reached.
    let nowhere = HubConfig { endpoint: mirror::nobody(), ..HubConfig::new(cache.path()) };
    Tokenizer::load(REPO, &Hub::new(nowhere)).unwrap().chat_template().unwrap_err();
}

#[test]
fn offline_without_the_file_says_what_to_do() {
    let cache = cache();
    let error = Tokenizer::load(REPO, &offline(&cache)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, TokensError::Offline { .. }));
    for part in ["tokenizer.json", REPO, cache.path().to_str().unwrap(), "HF_HUB_OFFLINE"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_unreachable_hub_says_where_it_looked() {
    let cache = cache();
    let endpoint = mirror::nobody();
    let config = HubConfig { endpoint: endpoint.clone(), ..HubConfig::new(cache.path()) };
    let error = Tokenizer::load(REPO, &Hub::new(config)).unwrap_err();
    let text = error.to_string();
    for part in ["tokenizer.json", &endpoint, cache.path().to_str().unwrap()] {
        assert!(text.contains(part), "{text}");
    }
    assert!(error.source().is_some());
}

#[test]
fn a_model_without_a_fast_tokenizer_is_refused() {
    let mirror = Mirror::start(vec![]);
    let error = Tokenizer::load(REPO, &hub(&mirror, &cache())).unwrap_err();
    assert!(matches!(error, TokensError::NotFast { .. }), "{error}");
    assert!(error.to_string().contains(REPO));
}

#[test]
fn a_gated_model_points_at_the_token() {
    for status in [401, 403] {
        let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::Status(status))]);
        let error = Tokenizer::load(REPO, &hub(&mirror, &cache())).unwrap_err();
        assert!(matches!(error, TokensError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    }
}

#[test]
fn the_token_is_sent_to_the_hub() {
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::file(TINY))]);
    let config = HubConfig {
        endpoint: mirror.endpoint(),
        token: Some("hf_secret".to_owned()),
        ..HubConfig::new(cache().path())
    };
    Tokenizer::load(REPO, &Hub::new(config)).unwrap();
    assert!(mirror.heads().iter().all(|head| head.contains("Bearer hf_secret")));
}

#[test]
fn redirects_are_followed() {
    let mirror = Mirror::start(vec![
        ("org/model", "tokenizer.json", Answer::Redirect("/elsewhere/resolve/main/real.json")),
        ("elsewhere", "real.json", Answer::file(TINY)),
    ]);
    let tokenizer = Tokenizer::load(REPO, &hub(&mirror, &cache())).unwrap();
    assert_eq!(tokenizer.vocab_size(), 3);
}

#[test]
fn a_download_that_breaks_off_is_resumed_by_the_next() {
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::cut(TINY, 40, true))]);
    let cache = cache();
    let error = Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap_err();
    assert!(matches!(error, TokensError::Download { .. }), "{error}");
    mirror.put("org/model", "tokenizer.json", Answer::file(TINY));
    Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap();
    let resumed = mirror.heads().iter().any(|head| head.contains("bytes=40-"));
    assert!(resumed, "{:?}", mirror.heads());
}

#[test]
fn a_short_file_never_stays_in_the_cache() {
    // No length is sent, so that only the size announced before tells.
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::cut(TINY, 40, false))]);
    let cache = cache();
    let error = hub(&mirror, &cache).fetch(RepoKind::Model, REPO, "tokenizer.json").unwrap_err();
    let TokensError::Truncated { got, want, .. } = error else { panic!("{error}") };
    assert_eq!((got, want), (40, TINY.len() as u64));
    assert_eq!(hub(&mirror, &cache).cached(RepoKind::Model, REPO, "tokenizer.json"), None);
    mirror.put("org/model", "tokenizer.json", Answer::file(TINY));
    Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap();
}

#[test]
fn leftovers_that_do_not_fit_are_thrown_away() {
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::file(TINY))]);
    let cache = cache();
    let blobs = cache.path().join("models--org--model/blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let too_long = "x".repeat(TINY.len() + 1);
    std::fs::write(blobs.join(format!("{}.part", mirror::etag(TINY))), too_long).unwrap();
    Tokenizer::load(REPO, &hub(&mirror, &cache)).unwrap();
}

#[test]
fn senseless_answers_are_errors() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 302 Found\r\netag: \"a\"\r\nx-repo-commit: b\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n",
        "nonsense\r\n\r\n",
        "",
    ] {
        let mirror =
            Mirror::start(vec![("org/model", "tokenizer.json", Answer::Raw(answer.to_owned()))]);
        let error = Tokenizer::load(REPO, &hub(&mirror, &cache())).unwrap_err();
        assert!(matches!(error, TokensError::Download { .. }), "{answer}: {error}");
    }
}

#[test]
fn datasets_have_their_own_place_and_progress_is_reported() {
    let mirror = Mirror::start(vec![("datasets/org/data", "rows.json", Answer::file("[1, 2]"))]);
    let cache = cache();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let hub = hub(&mirror, &cache).with_progress(move |at| sink.lock().unwrap().push(at.clone()));
    let path = hub.fetch(RepoKind::Dataset, "org/data", "rows.json").unwrap();
    assert!(path.starts_with(cache.path().join("datasets--org--data")));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "[1, 2]");
    let last = seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!((last.file.as_str(), last.bytes, last.total), ("rows.json", 6, 6));
}

#[test]
fn a_file_with_an_address_of_its_own_is_downloaded_once() {
    let mirror = Mirror::start(vec![
        ("org/data", "trace.jsonl", Answer::file("{}\n")),
        ("org/other", "trace.jsonl", Answer::file("[]\n")),
    ]);
    let cache = cache();
    let url = |repo| format!("{}/{repo}/resolve/main/trace.jsonl", mirror.endpoint());
    let token = HubConfig { token: Some("hf_secret".to_owned()), ..HubConfig::new(cache.path()) };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let hub = Hub::new(token).with_progress(move |progress| {
        heard.lock().unwrap().push((progress.file.clone(), progress.bytes, progress.total));
    });
    let path = hub.fetch_url(&url("org/data")).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
    assert_eq!(*seen.lock().unwrap(), [("trace.jsonl".to_owned(), 3, 3)]);
    let other = hub.fetch_url(&url("org/other")).unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "[]\n");

    let asked = mirror.requests();
    assert_eq!(hub.fetch_url(&url("org/data")).unwrap(), path);
    assert_eq!(offline(&cache).fetch_url(&url("org/data")).unwrap(), path);
    assert_eq!(mirror.requests(), asked);
    assert!(mirror.heads().iter().all(|head| !head.contains("hf_secret")), "the token got out");
}

#[test]
fn a_file_that_does_not_come_whole_is_not_kept() {
    let whole = "{}\n{}\n{}\n";
    let mirror = Mirror::start(vec![
        ("org/cut", "trace.jsonl", Answer::cut(whole, 4, true)),
        ("org/gone", "trace.jsonl", Answer::Status(500)),
    ]);
    let cache = cache();
    let hub = Hub::new(HubConfig::new(cache.path()));
    let fetch = |repo: &str| {
        hub.fetch_url(&format!("{}/{repo}/resolve/main/trace.jsonl", mirror.endpoint()))
    };
    for repo in ["org/cut", "org/cut", "org/gone"] {
        let error = fetch(repo).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("trace.jsonl"), "{text}");
        assert!(
            matches!(error, TokensError::Truncated { .. } | TokensError::Download { .. }),
            "{error:?}"
        );
    }
    assert!(matches!(fetch("org/none").unwrap_err(), TokensError::Missing { .. }));
    let kept = std::fs::read_dir(cache.path().join("servebench")).unwrap().count();
    assert_eq!(kept, 0, "a part of a file is left");

    mirror.put("org/cut", "trace.jsonl", Answer::file(whole));
    assert_eq!(std::fs::read_to_string(fetch("org/cut").unwrap()).unwrap(), whole);

    let elsewhere = format!("{}/a/b/trace.jsonl", mirror::nobody());
    let error = hub.fetch_url(&elsewhere).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot download trace.jsonl of `a/b` from http://127.0.0.1:"),
        "{error}"
    );
    let error = offline(&cache).fetch_url(&elsewhere).unwrap_err().to_string();
    assert!(error.contains("HF_HUB_OFFLINE"), "{error}");
}

#[test]
fn the_files_of_a_repository_are_listed_and_fetched_at_a_revision() {
    const CONVERTED: &str = "refs/convert/parquet";
    let mirror = Mirror::start(vec![("datasets/org/data", "rows.json", Answer::file("[1, 2]"))]);
    let listing = |names: &[&str]| {
        let names: Vec<_> =
            names.iter().map(|name| serde_json::json!({"rfilename": name})).collect();
        Answer::file(&serde_json::json!({"sha": COMMIT, "siblings": names}).to_string())
    };
    mirror.put_at(
        "/api/datasets/org/data/revision/main",
        listing(&["rows.json", "README.md", "../out", "/etc/x"]),
    );
    mirror.put_at(
        "/api/datasets/org/data/revision/refs%2Fconvert%2Fparquet",
        listing(&["default/train/0000.parquet"]),
    );
    mirror.put_at(
        "/datasets/org/data/resolve/refs%2Fconvert%2Fparquet/default/train/0000.parquet",
        Answer::file("PAR1"),
    );
    let cache = cache();
    let online = hub(&mirror, &cache);
    let files = |hub: &Hub, revision| hub.files(RepoKind::Dataset, "org/data", revision);
    assert_eq!(files(&online, None).unwrap(), ["README.md", "rows.json"]);
    assert_eq!(files(&online, Some(CONVERTED)).unwrap(), ["default/train/0000.parquet"]);
    assert!(matches!(files(&online, Some("no")), Err(TokensError::Missing { .. })));
    assert!(matches!(files(&offline(&cache), None), Err(TokensError::Offline { .. })));

    let fetch =
        |hub: &Hub, revision, file| hub.fetch_at(RepoKind::Dataset, "org/data", revision, file);
    let path = fetch(&online, Some(CONVERTED), "default/train/0000.parquet").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "PAR1");
    fetch(&online, None, "rows.json").unwrap();
    // From here on the cache is enough, and neither asks.
    let asked = mirror.requests();
    let nowhere = HubConfig { endpoint: mirror::nobody(), ..HubConfig::new(cache.path()) };
    for hub in [offline(&cache), Hub::new(nowhere)] {
        assert_eq!(fetch(&hub, Some(CONVERTED), "default/train/0000.parquet").unwrap(), path);
        // The mirror has one commit for all revisions, and so one snapshot.
        let files = files(&hub, Some(CONVERTED)).unwrap();
        assert_eq!(files, ["default/train/0000.parquet", "rows.json"]);
        fetch(&hub, None, "rows.json").unwrap();
        fetch(&hub, None, "README.md").unwrap_err();
    }
    assert_eq!(mirror.requests(), asked);
}

#[test]
fn a_snapshot_whose_revision_nobody_noted_serves_for_main() {
    let cache = cache();
    let snapshot = cache.path().join("datasets--org--data/snapshots").join(COMMIT);
    std::fs::create_dir_all(snapshot.join("data")).unwrap();
    std::fs::write(snapshot.join("data/rows.jsonl"), "{}").unwrap();
    let hub = offline(&cache);
    assert_eq!(hub.files(RepoKind::Dataset, "org/data", None).unwrap(), ["data/rows.jsonl"]);
    let path = hub.fetch_at(RepoKind::Dataset, "org/data", None, "data/rows.jsonl").unwrap();
    assert_eq!(path, snapshot.join("data/rows.jsonl"));
    hub.files(RepoKind::Dataset, "org/data", Some("other")).unwrap_err();
}

#[test]
fn a_senseless_list_of_files_is_an_error() {
    for answer in ["{}", "[]", "nonsense", r#"{"sha": 1, "siblings": [1]}"#] {
        let mirror = Mirror::start(vec![]);
        mirror.put_at("/api/datasets/org/data/revision/main", Answer::file(answer));
        let error = hub(&mirror, &cache()).files(RepoKind::Dataset, "org/data", None).unwrap_err();
        assert!(error.to_string().starts_with("cannot download list of files of"), "{error}");
    }
}

#[test]
fn the_token_stays_with_the_hub_wherever_that_sends_for_a_file() {
    let elsewhere = Mirror::start(vec![("org/store", "tokenizer.json", Answer::file(TINY))]);
    let to = format!("{}/org/store/resolve/main/tokenizer.json", elsewhere.endpoint());
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: {to}\r\nx-linked-etag: \"linked\"\r\n\
         x-repo-commit: {COMMIT}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::Raw(redirect))]);
    let cache = cache();
    let config = HubConfig {
        endpoint: mirror.endpoint(),
        token: Some("hf_secret".to_owned()),
        ..HubConfig::new(cache.path())
    };
    let hub = Hub::new(config);
    let path = hub.fetch(RepoKind::Model, REPO, "tokenizer.json").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), TINY);
    assert!(cache.path().join("models--org--model/blobs/linked").is_file());
    assert!(mirror.heads().iter().all(|head| head.contains("hf_secret")), "the hub asks for it");
    let heads = elsewhere.heads();
    assert_eq!(heads.len(), 2);
    assert!(heads.iter().all(|head| !head.contains("hf_secret")), "{heads:?}");
}

#[test]
fn no_file_is_taken_that_is_too_large() {
    let rows = "x".repeat(1000);
    let mirror = Mirror::start(vec![
        ("datasets/org/data", "rows.json", Answer::file(&rows)),
        // Says that it is small, and never ends by itself.
        ("datasets/org/liar", "rows.json", Answer::Raw(liar(&rows))),
    ]);
    let cache = cache();
    let config =
        HubConfig { endpoint: mirror.endpoint(), size_limit: 999, ..HubConfig::new(cache.path()) };
    let hub = Hub::new(config.clone());
    let said = |error: TokensError| {
        let text = error.to_string();
        assert!(matches!(error, TokensError::TooLarge { limit: 999, .. }), "{error:?}");
        assert!(text.contains("rows.json") && text.contains("999 bytes"), "{text}");
    };
    for repo in ["org/data", "org/liar"] {
        said(hub.fetch(RepoKind::Dataset, repo, "rows.json").unwrap_err());
    }
    let address =
        |repo: &str| format!("{}/datasets/{repo}/resolve/main/rows.json", mirror.endpoint());
    said(hub.fetch_url(&address("org/data")).unwrap_err());
    said(hub.fetch_url(&address("org/liar")).unwrap_err());
    let kept = servebench_tokens::files_under(cache.path());
    assert!(kept.is_empty(), "{kept:?}");

    let hub = Hub::new(HubConfig { size_limit: 1000, ..config });
    hub.fetch(RepoKind::Dataset, "org/data", "rows.json").unwrap();
    hub.fetch_url(&address("org/data")).unwrap();
}

/// An answer that announces ten bytes, and has more.
fn liar(rows: &str) -> String {
    format!(
        "HTTP/1.1 206 Partial Content\r\netag: \"e\"\r\nx-repo-commit: {COMMIT}\r\n\
         content-range: bytes 0-0/10\r\nconnection: close\r\n\r\n{rows}"
    )
}

#[test]
fn what_the_hub_tells_names_no_file_outside_the_cache() {
    for (commit, etag) in [("../../../out", "e"), (COMMIT, "../../out"), ("a/b", "e"), (COMMIT, "")]
    {
        let answer = format!(
            "HTTP/1.1 206 Partial Content\r\netag: \"{etag}\"\r\nx-repo-commit: {commit}\r\n\
             content-range: bytes 0-1/2\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        );
        let mirror = Mirror::start(vec![("org/model", "tokenizer.json", Answer::Raw(answer))]);
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("cache");
        let config = HubConfig { endpoint: mirror.endpoint(), ..HubConfig::new(&inside) };
        let fetched = Hub::new(config).fetch(RepoKind::Model, REPO, "tokenizer.json");
        let error = fetched.unwrap_err();
        assert!(matches!(error, TokensError::Download { .. }), "{error}");
        let kept = servebench_tokens::files_under(folder.path());
        assert!(kept.is_empty(), "{kept:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_downloaded_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    let mirror = Mirror::start(vec![("org/data", "trace.jsonl", Answer::file("{}\n"))]);
    let cache = cache();
    let other = cache.path().join("other");
    std::fs::write(&other, "").unwrap();
    let url = format!("{}/org/data/resolve/main/trace.jsonl", mirror.endpoint());
    let path = hub(&mirror, &cache).fetch_url(&url).unwrap();
    assert_eq!(mode(&path), mode(&other));
}
