//! Events as bytes.
//!
//! An event is a tag (its kind in the low three bits, flags above), the request's id as its distance from the
//! id before it in the frame, and its parts. Stamps are distances from the stamp before; the first ones
//! of a frame from 0.

use crate::Malformed;
use crate::octets::{Put, Rest};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use servebench_core::{Failure, FailureKind, ReadLag, Stamp};
use servebench_http::{Ended, Event, Head, Receipt};
use std::borrow::Cow;

const BEGAN: u8 = 0;
const OPENED: u8 = 1;
const AGAIN: u8 = 2;
const HEAD: u8 = 3;
const DATA: u8 = 4;
const OVER: u8 = 5;

/// What the next event is a distance from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    id: u64,
    at: Stamp,
}

impl Before {
    /// Writes what happened to the request `id`. An event of a kind that is not known here is left out.
    pub(crate) fn write(&mut self, id: u64, event: &Event<'_>, to: &mut Vec<u8>) {
        let begin = |to: &mut Vec<u8>, kind: u8, flags: &[bool]| {
            let flags =
                flags.iter().enumerate().fold(0, |bits, (at, is)| bits | u8::from(*is) << at);
            to.push(kind | flags << 3);
            to.signed(id.wrapping_sub(self.id).cast_signed());
        };
        match event {
            Event::Began { at, target, keep_pieces } => {
                begin(to, BEGAN, &[target.is_some(), *keep_pieces]);
                self.stamp(*at, to);
                if let Some(target) = target {
                    to.number((*target).into());
                }
            }
            Event::Opened { took, tls } => {
                begin(to, OPENED, &[tls.is_some()]);
                to.duration(*took);
                if let Some(tls) = tls {
                    to.duration(*tls);
                }
            }
            Event::Again { sent, reconnects, retries, failure } => {
                begin(to, AGAIN, &[sent.is_some()]);
                if let Some(sent) = sent {
                    to.stamp(*sent, self.at);
                }
                to.number((*reconnects).into());
                to.number((*retries).into());
                put_failure(failure, to);
            }
            Event::Head { at, head } => {
                let texts = [&head.location, &head.encoding, &head.metadata];
                begin(to, HEAD, &texts.map(Option::is_some));
                self.stamp(*at, to);
                to.number(head.status.into());
                for text in texts.into_iter().flatten() {
                    to.bytes(text.as_bytes());
                }
            }
            Event::Data { receipt: Receipt { at, after, is_told }, bytes } => {
                let exact = *after == Some(*at);
                begin(to, DATA, &[after.is_some(), *is_told, exact]);
                self.stamp(*at, to);
                if let Some(after) = after.filter(|_| !exact) {
                    to.stamp(after, *at);
                }
                to.bytes(bytes);
            }
            Event::Over { at, ended, sent, lag } => {
                let (how, failure) = match ended.as_ref() {
                    Ended::Complete => (0, None),
                    Ended::Early => (1, None),
                    Ended::Broken(failure) => (2, Some(failure)),
                    Ended::NoAnswer(failure) => (3, Some(failure)),
                };
                begin(to, OVER, &[how & 1 != 0, how & 2 != 0, sent.is_some(), lag.is_some()]);
                self.stamp(*at, to);
                if let Some(sent) = sent {
                    to.stamp(*sent, *at);
                }
                if let Some(lag) = lag {
                    to.number(lag.reads().into());
                    to.duration(lag.longest());
                    to.duration(lag.total());
                    to.duration(lag.clock_error());
                }
                if let Some(failure) = failure {
                    put_failure(failure, to);
                }
            }
            _ => return,
        }
        self.id = id;
    }

    fn stamp(&mut self, at: Stamp, to: &mut Vec<u8>) {
        to.stamp(at, self.at);
        self.at = at;
    }

    /// Reads the next event, and the id of its request.
    pub(crate) fn read<'a>(&mut self, rest: &mut Rest<'a>) -> Result<(u64, Event<'a>), Malformed> {
        let tag = rest.byte()?;
        let flag = |place: u8| tag >> (3 + place) & 1 == 1;
        let known = match tag & 7 {
            BEGAN => 2,
            OPENED | AGAIN => 1,
            HEAD | DATA => 3,
            OVER => 4,
            _ => return Err(Malformed),
        };
        if tag >> (3 + known) != 0 {
            return Err(Malformed);
        }
        self.id = self.id.wrapping_add(rest.signed()?.cast_unsigned());
        let event = match tag & 7 {
            BEGAN => Event::Began {
                at: self.next_stamp(rest)?,
                target: flag(0).then(|| rest.small()).transpose()?,
                keep_pieces: flag(1),
            },
            OPENED => Event::Opened {
                took: rest.duration()?,
                tls: flag(0).then(|| rest.duration()).transpose()?,
            },
            AGAIN => Event::Again {
                sent: flag(0).then(|| rest.stamp(self.at)).transpose()?,
                reconnects: rest.small()?,
                retries: rest.small()?,
                failure: Cow::Owned(failure(rest)?),
            },
            HEAD => {
                let at = self.next_stamp(rest)?;
                let status = u16::try_from(rest.number()?).map_err(|_| Malformed)?;
                let mut text = |place| flag(place).then(|| rest.text()).transpose();
                let (location, encoding, metadata) = (text(0)?, text(1)?, text(2)?);
                Event::Head { at, head: Cow::Owned(Head { status, location, encoding, metadata }) }
            }
            DATA => {
                let at = self.next_stamp(rest)?;
                let after = match (flag(0), flag(2)) {
                    (true, true) => Some(at),
                    (true, false) => Some(rest.stamp(at)?),
                    (false, _) => None,
                };
                let receipt = Receipt { at, after, is_told: flag(1) };
                Event::Data { receipt, bytes: rest.bytes()? }
            }
            _ => {
                let at = self.next_stamp(rest)?;
                let sent = flag(2).then(|| rest.stamp(at)).transpose()?;
                let lag = flag(3).then(|| lag(rest)).transpose()?;
                let ended = match (flag(1), flag(0)) {
                    (false, false) => Ended::Complete,
                    (false, true) => Ended::Early,
                    (true, false) => Ended::Broken(failure(rest)?),
                    (true, true) => Ended::NoAnswer(failure(rest)?),
                };
                Event::Over { at, ended: Cow::Owned(ended), sent, lag }
            }
        };
        Ok((self.id, event))
    }

    fn next_stamp(&mut self, rest: &mut Rest<'_>) -> Result<Stamp, Malformed> {
        self.at = rest.stamp(self.at)?;
        Ok(self.at)
    }
}

fn lag(rest: &mut Rest<'_>) -> Result<ReadLag, Malformed> {
    let (reads, longest, total) = (rest.small()?, rest.duration()?, rest.duration()?);
    ReadLag::from_parts(reads, longest, total, rest.duration()?).ok_or(Malformed)
}

/// A failure as bytes: the name of its kind, and the words.
pub(crate) fn put_failure(failure: &Failure, to: &mut Vec<u8>) {
    to.bytes(failure.kind.name().as_bytes());
    to.bytes(failure.detail.as_bytes());
}

/// Reads what [`put_failure`] wrote.
pub(crate) fn failure(rest: &mut Rest<'_>) -> Result<Failure, Malformed> {
    let name = rest.text()?;
    let name: serde::de::value::StrDeserializer<'_, Error> = name.as_str().into_deserializer();
    let kind = FailureKind::deserialize(name).map_err(|_| Malformed)?;
    Ok(Failure { kind, detail: rest.text()?.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option;
    use proptest::prelude::*;
    use std::time::Duration;

    fn stamp() -> impl Strategy<Value = Stamp> {
        prop_oneof![any::<u32>().prop_map(|at| Stamp(at.into())), any::<u64>().prop_map(Stamp)]
    }

    fn time() -> impl Strategy<Value = Duration> {
        any::<u64>().prop_map(Duration::from_nanos)
    }

    fn failures() -> impl Strategy<Value = Failure> {
        (prop::sample::select(vec![FailureKind::Reset, FailureKind::Timeout]), ".*")
            .prop_map(|(kind, words)| Failure { kind, detail: words.into() })
    }

    fn ended() -> impl Strategy<Value = Ended> {
        prop_oneof![
            Just(Ended::Complete),
            Just(Ended::Early),
            failures().prop_map(Ended::Broken),
            failures().prop_map(Ended::NoAnswer),
        ]
    }

    fn lags() -> impl Strategy<Value = ReadLag> {
        (0..u32::MAX, time(), time(), any::<u32>()).prop_map(|(reads, longest, total, error)| {
            let error = Duration::from_nanos(error.into());
            ReadLag::from_parts(reads, longest, total, error).unwrap_or_default()
        })
    }

    fn event() -> impl Strategy<Value = Event<'static>> {
        let head = (any::<u16>(), option::of(".*"), option::of(".*"), option::of(".*")).prop_map(
            |(status, location, encoding, metadata)| Head { status, location, encoding, metadata },
        );
        let bytes = prop::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            (stamp(), option::of(any::<u32>()), any::<bool>())
                .prop_map(|(at, target, keep_pieces)| Event::Began { at, target, keep_pieces }),
            (time(), option::of(time())).prop_map(|(took, tls)| Event::Opened { took, tls }),
            (option::of(stamp()), any::<u32>(), any::<u32>(), failures()).prop_map(
                |(sent, reconnects, retries, failure)| Event::Again {
                    sent,
                    reconnects,
                    retries,
                    failure: Cow::Owned(failure),
                }
            ),
            (stamp(), head).prop_map(|(at, head)| Event::Head { at, head: Cow::Owned(head) }),
            (stamp(), option::of(stamp()), any::<bool>(), bytes).prop_map(
                |(at, after, is_told, bytes)| Event::Data {
                    receipt: Receipt { at, after, is_told },
                    bytes: bytes.leak(),
                }
            ),
            (stamp(), ended(), option::of(stamp()), option::of(lags())).prop_map(
                |(at, ended, sent, lag)| Event::Over { at, ended: Cow::Owned(ended), sent, lag }
            ),
        ]
    }

    proptest! {
        #[test]
        fn events_are_read_as_they_were_written(
            events in prop::collection::vec((any::<u64>(), event()), 0..12),
        ) {
            let (mut bytes, mut before) = (Vec::new(), Before::default());
            for (id, event) in &events {
                before.write(*id, event, &mut bytes);
            }
            let (mut rest, mut before) = (Rest(&bytes), Before::default());
            for (id, event) in events {
                prop_assert_eq!(before.read(&mut rest), Ok((id, event)));
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_token_takes_a_few_bytes_beside_its_own() {
        let (mut bytes, mut before) = (Vec::new(), Before::default());
        for ms in 0..100 {
            let at = Stamp::from_millis(10 * ms);
            let receipt = Receipt { at, after: Some(at), is_told: true };
            before.write(ms % 64, &Event::Data { receipt, bytes: &[b'x'; 100] }, &mut bytes);
        }
        assert!(bytes.len() < 100 * 108, "{}", bytes.len());
    }
}
