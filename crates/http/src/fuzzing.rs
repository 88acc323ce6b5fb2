//! What must hold for all bytes, as functions that a fuzzer and the property tests share.

use crate::coding::Inflate;
use crate::lean::{Incoming, Malformed, Place};
use crate::wire::{Head, Visit};
use crate::{BaseUrl, Proxies, Proxy};
use servebench_core::Progress;

/// A response does not depend on how its bytes were cut. The first byte chooses the cuts.
pub fn response(data: &[u8]) {
    let Some((&seed, bytes)) = data.split_first() else { return };
    let step = usize::from(seed).max(1);
    let cuts: Vec<usize> = (1..=64).map(|nth| nth * step).collect();
    let (whole, place) = read(bytes, &[]);
    let (cut, place_when_cut) = read(bytes, &cuts);
    assert_eq!(whole, cut);
    match (place, place_when_cut) {
        // Bytes behind the end are only noticed when they come together with it.
        (Ok(Place::End { .. }), Ok(Place::End { .. })) => {}
        (place, when_cut) => assert_eq!(place, when_cut),
    }
}

/// What variables say of proxies is used or refused, without a word of what may be a password. The bytes
/// are lines: a proxy, `no_proxy`, and a server's address.
pub fn proxy_settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines().chain(std::iter::repeat(""));
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let (proxy, exceptions, base) = (next(), next(), next());
    let Ok(base) = base.parse::<BaseUrl>() else { return };
    let proxies = Proxies::from_vars(|name| match name {
        "ALL_PROXY" => Some(proxy.replace('@', ":zzsecretzz@")),
        "NO_PROXY" => Some(exceptions.clone()),
        _ => None,
    });
    let chosen = proxies.choose(&base);
    let shown = match &chosen {
        Ok(proxy) => {
            format!("{proxy:?} {}", proxy.as_ref().map_or(String::new(), Proxy::to_string))
        }
        Err(error) => error.to_string(),
    };
    assert!(!shown.contains("zzsecretzz"), "{shown}");
    if matches!(base.host(), "localhost" | "127.0.0.1") || base.socket().is_some() {
        assert_eq!(chosen, Ok(None));
    }
}

/// A compressed body is the same however it is cut, or damaged. The first byte chooses the coding, the
/// second the cuts.
pub fn coded_body(data: &[u8]) {
    let [coding, step, bytes @ ..] = data else { return };
    let coding = if coding % 2 == 0 { "gzip" } else { "deflate" };
    let inflate = |step: usize| {
        let mut inflate = Inflate::of(coding)?;
        let mut text = Vec::new();
        for piece in bytes.chunks(step) {
            text.extend(inflate.take(piece).ok()?);
            if text.len() > 1 << 24 {
                return None;
            }
        }
        Some((text, inflate.is_whole()))
    };
    assert_eq!(inflate(bytes.len().max(1)), inflate(usize::from(*step).max(1)));
}

/// What was shown of a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) head: Option<Head>,
    pub(crate) body: Vec<u8>,
}

impl Visit for Seen {
    fn head(&mut self, head: &Head) -> Progress {
        assert!(self.head.replace(head.clone()).is_none(), "a response has one head");
        Progress::More
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
        Progress::More
    }
}

/// Reads `bytes`, cut at `cuts`: what was seen, and where it ended.
pub(crate) fn read(bytes: &[u8], cuts: &[usize]) -> (Seen, Result<Place, Malformed>) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let (mut incoming, mut seen, mut place) = (Incoming::default(), Seen::default(), Place::Amid);
    for cut in cuts.windows(2).filter(|cut| cut[0] < cut[1]) {
        match incoming.take(&bytes[cut[0]..cut[1]], &mut seen) {
            Ok(Place::Amid) => {}
            Ok(now) => {
                // Bytes behind the end are noticed when they come in the same piece.
                place = now;
                break;
            }
            Err(error) => return (seen, Err(error)),
        }
    }
    if place == Place::Amid && incoming.is_over() {
        place = Place::End { reusable: false };
    }
    (seen, Ok(place))
}
