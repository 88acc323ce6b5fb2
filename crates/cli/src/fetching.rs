//! Progress of downloads from the hub.

use crate::Io;
use servebench_tokens::Downloaded;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a line is written.
const LINE: Duration = Duration::from_secs(2);

/// Says how far a download is: at its beginning, now and then, and at its end.
#[derive(Debug)]
pub(crate) struct Fetching {
    io: Io,
    /// The file that was spoken of last, and when.
    last: Mutex<Option<(String, Instant)>>,
}

impl Fetching {
    pub(crate) fn new(io: &Io) -> Self {
        Self { io: io.clone(), last: Mutex::default() }
    }

    pub(crate) fn show(&self, downloaded: &Downloaded) {
        let now = now();
        let Ok(mut last) = self.last.lock() else { return };
        let recent = last
            .as_ref()
            .is_some_and(|(file, at)| *file == downloaded.file && now.duration_since(*at) < LINE);
        if recent && downloaded.bytes < downloaded.total {
            return;
        }
        *last = Some((downloaded.file.clone(), now));
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (so_far, total) = (megabytes(downloaded.bytes), megabytes(downloaded.total));
        self.io.say(format_args!("fetching {}: {so_far:.1} of {total:.1} MB", downloaded.file));
    }
}

#[expect(clippy::disallowed_methods, reason = "paces talk, measures nothing")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_download_is_a_few_lines() {
        let (io, captured) = Io::captured();
        let fetching = Fetching::new(&io);
        for file in ["a.json", "b.json"] {
            for bytes in 0..=1000 {
                fetching.show(&Downloaded { file: file.into(), bytes, total: 1000 });
            }
        }
        let said = captured.err();
        assert!(said.starts_with("fetching a.json: 0.0 of 0.0 MB\n"), "{said}");
        // Beginning and end of each, with room for a machine that is very slow.
        assert!((4..=20).contains(&said.lines().count()), "{said}");
    }
}
