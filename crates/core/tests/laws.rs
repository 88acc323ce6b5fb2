//! Laws of the core types.

use proptest::prelude::*;
use servebench_core::{Chunk, Chunks, Failure, FailureKind, Stamp};

proptest! {
    #[test]
    fn chunks_read_back_as_pushed(mut list in prop::collection::vec(
        (any::<u32>(), prop::option::of(any::<u32>()), 0..4u32), 0..200))
    {
        list.sort_by_key(|c| c.0);
        let mut chunks = Chunks::default();
        for &(at, tokens, choice) in &list {
            chunks.push(Stamp(u64::from(at) << 20), tokens, choice);
        }
        let want: Vec<Chunk> = list
            .iter()
            .map(|&(at, tokens, choice)| Chunk { at: Stamp(u64::from(at) << 20), tokens, choice })
            .collect();
        prop_assert_eq!(chunks.iter().collect::<Vec<_>>(), want.clone());
        prop_assert_eq!(chunks.len(), want.len());
        prop_assert_eq!(chunks.first(), want.first().map(|c| c.at));
        prop_assert_eq!(chunks.last(), want.last().map(|c| c.at));
    }

    #[test]
    fn chunk_stamps_never_decrease(stamps in prop::collection::vec(any::<u64>(), 1..50)) {
        let mut chunks = Chunks::default();
        for &at in &stamps {
            chunks.push(Stamp(at), None, 0);
        }
        let read: Vec<_> = chunks.iter().map(|c| c.at).collect();
        prop_assert!(read.is_sorted());
    }

    #[test]
    fn details_are_cut_on_a_character(text in ".{0,3000}") {
        let failure = Failure::new(FailureKind::Server, &text);
        prop_assert!(failure.detail.len() <= Failure::DETAIL_LIMIT + '…'.len_utf8());
        prop_assert!(text.starts_with(failure.detail.trim_end_matches('…')));
    }
}
