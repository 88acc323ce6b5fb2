//! Laws of the core types.

use proptest::prelude::*;
use servebench_core::{Chunk, Chunks, Failure, FailureKind, PackedChunks, Stamp};

proptest! {
    #[test]
    fn chunks_read_back_as_pushed(mut list in prop::collection::vec(
        (0..5_000_000u64, prop::option::of(any::<u32>()), prop_oneof![0..4u32, any::<u32>()]), 0..200))
    {
        list.sort_by_key(|c| c.0);
        let mut chunks = Chunks::default();
        for &(at, tokens, choice) in &list {
            chunks.push(Stamp(at * 64), tokens, choice);
        }
        let want: Vec<Chunk> = list
            .iter()
            .map(|&(at, tokens, choice)| {
                Chunk { at: Stamp(at * 64), after: Stamp(at * 64), tokens, choice }
            })
            .collect();
        prop_assert_eq!(chunks.iter().collect::<Vec<_>>(), want.clone());
        prop_assert_eq!(chunks.len(), want.len());
        prop_assert_eq!(chunks.first(), want.first().map(|c| c.at));
        prop_assert_eq!(chunks.last(), want.last().map(|c| c.at));
    }

    /// Of each read, given as the pause before it and the number of chunks in it, the last chunk is
    /// exact, if nothing followed it, and the others have the read's bounds.
    #[test]
    fn chunks_of_one_read_are_bounds_but_for_the_last(
        reads in prop::collection::vec((1..1_000_000u64, 0..5u32, any::<bool>()), 0..50))
    {
        let (mut chunks, mut want, mut now) = (Chunks::default(), Vec::new(), 0);
        for (pause, count, more) in reads {
            let (after, at) = (Stamp(now * 64), Stamp((now + pause) * 64));
            now += pause;
            chunks.read_after(after);
            for index in 0..count {
                chunks.push(at, None, 0);
                let exact = index + 1 == count && !more;
                want.push((if exact { at } else { after }, at));
            }
            if more {
                chunks.followed(at);
            }
        }
        prop_assert_eq!(chunks.iter().map(|c| (c.after, c.at)).collect::<Vec<_>>(), want);
    }

    /// A list that was closed is the same list, and can grow on.
    #[test]
    fn shrinking_changes_nothing(
        reads in prop::collection::vec(
            (prop_oneof![0..100u64, 0..1_000_000_000_000u64], 0..4u32, any::<bool>(), any::<bool>()), 0..60))
    {
        let (mut grown, mut closed, mut now) = (Chunks::default(), Chunks::default(), 0);
        for (pause, count, more, close) in reads {
            let after = Stamp(now);
            now += pause;
            for chunks in [&mut grown, &mut closed] {
                chunks.read_after(after);
                for index in 0..count {
                    chunks.push(Stamp(now), (index > 0).then_some(index), index % 2);
                }
                if more {
                    chunks.followed(Stamp(now));
                }
            }
            if close {
                closed.shrink();
            }
            prop_assert_eq!(&grown, &closed);
            prop_assert!(grown.iter().eq(closed.iter()));
            prop_assert_eq!((grown.len(), grown.last()), (closed.len(), closed.last()));
        }
    }

    #[test]
    fn packed_chunks_are_the_same_chunks(
        list in prop::collection::vec((0..1u64 << 40, prop::option::of(any::<u32>()), 0..3u32), 0..60),
        closed in any::<bool>(),
    ) {
        let (mut chunks, mut now) = (Chunks::default(), 0);
        for (gap, tokens, choice) in list {
            now += gap;
            chunks.read_after(Stamp(now.saturating_sub(gap / 2)));
            chunks.push(Stamp(now), tokens, choice);
        }
        if closed {
            chunks.shrink();
        }
        let again = Chunks::unpack(&chunks.pack());
        prop_assert_eq!(again.as_ref(), Some(&chunks));
        let again = again.unwrap_or_default();
        prop_assert_eq!((again.first(), again.last()), (chunks.first(), chunks.last()));
    }

    #[test]
    fn any_bytes_are_packed_chunks_or_none(
        count in 0..100u32, first in prop_oneof![0..10u64, any::<u64>()],
        bytes in prop::collection::vec(prop_oneof![Just(u8::MAX), any::<u8>()], 0..40),
    ) {
        let packed = PackedChunks { count, first, bytes: bytes.into() };
        let Some(mut chunks) = Chunks::unpack(&packed) else { return Ok(()) };
        prop_assert_eq!(chunks.len(), count as usize);
        prop_assert!(chunks.iter().zip(chunks.iter().skip(1)).all(|(one, next)| one.at <= next.at));
        // It can be gone on with.
        let last = chunks.last().unwrap_or_default();
        chunks.push(last, None, 0);
        prop_assert_eq!(chunks.iter().last().map(|chunk| chunk.at), Some(last));
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

    /// A steady beat, give or take half a millisecond, and a stall now and then.
    #[test]
    fn a_chunk_takes_about_two_bytes(jitters in prop::collection::vec((0..2_000_000u64, 0..100u32), 256)) {
        let (mut chunks, mut at) = (Chunks::default(), 1_000_000_000_000);
        for (jitter, stall) in jitters {
            at += 9_000_000 + jitter + if stall == 0 { 50_000_000 } else { 0 };
            chunks.push(Stamp(at), Some(1), 0);
        }
        chunks.shrink();
        prop_assert!(chunks.size() < 256 * 9 / 4, "{} bytes", chunks.size());
    }

    #[test]
    fn details_are_cut_on_a_character(text in ".{0,3000}") {
        let failure = Failure::new(FailureKind::Server, &text);
        prop_assert!(failure.detail.len() <= Failure::DETAIL_LIMIT + '…'.len_utf8());
        prop_assert!(text.starts_with(failure.detail.trim_end_matches('…')));
    }
}
