//! What must hold for all bytes, as functions that a fuzzer and the property tests share.

use crate::lean::{Incoming, Malformed, Place};
use crate::wire::{Head, Visit};
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
