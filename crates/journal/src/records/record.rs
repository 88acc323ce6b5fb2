//! One record as bytes, and back.
//!
//! Fields are told apart by their order alone, so each is written, whether somebody needs it or not: a new
//! field of a record does not compile until it has its place here, behind those there are.

use super::codec::{Decoder, Encoder};
use super::{Counted, Kept};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use servebench_core::{
    CachedDetails, Chunks, Failure, FailureKind, PackedChunks, Rare, ReadLag, Record, Reply, Stamp,
};
use std::time::Duration;

pub(super) fn encode(record: &Record, end: Stamp, out: &mut Vec<u8>) {
    let Record { id, intended, dispatched, lateness, turnaround, prompt_len, output_len, reply } =
        record;
    let Reply {
        sent,
        headers,
        status,
        chunks,
        last_line,
        text,
        pieces,
        keep_pieces,
        finish_reason,
        prompt_tokens,
        completion_tokens,
        cached_tokens,
        server_latency,
        failure,
        read_lag,
        rare,
    } = reply;
    let base = dispatched.0;
    let out = &mut Encoder::new(out);
    out.number(*id);
    out.number(base);
    out.near(intended.0, base);
    out.near(end.0, base);
    out.number(*prompt_len);
    out.number(*output_len);
    let PackedChunks { count, first, bytes } = chunks.pack();
    out.number(count);
    out.near(first, base / Chunks::RESOLUTION);
    out.bytes(&bytes);
    out.bytes(text.as_bytes());
    let duration = |out: &mut Encoder<'_>, time: &Duration| out.number(nanos(*time));
    let stamp = |out: &mut Encoder<'_>, at: &Stamp| out.near(at.0, base);
    let words = |out: &mut Encoder<'_>, words: &str| out.bytes(words.as_bytes());
    out.option(lateness.as_ref(), duration);
    out.option(turnaround.as_ref(), duration);
    out.option(sent.as_ref(), stamp);
    out.option(headers.as_ref(), stamp);
    out.option(*status, Encoder::number);
    out.option(last_line.as_ref(), stamp);
    out.option(keep_pieces.then_some(pieces), |out, pieces| put_list(out, pieces));
    out.option(finish_reason.as_deref(), words);
    out.option(*prompt_tokens, Encoder::number);
    out.option(*completion_tokens, Encoder::number);
    out.option(*cached_tokens, Encoder::number);
    // What is no number is nothing that was told.
    let told = server_latency.filter(|seconds| !seconds.is_nan());
    out.option(told, |out, seconds| out.raw(&seconds.to_le_bytes()));
    out.option(failure.as_ref(), |out, Failure { kind, detail }| {
        words(out, kind.name());
        words(out, detail);
    });
    out.option(read_lag.as_ref(), |out, lag| {
        out.number(lag.reads());
        duration(out, &lag.longest());
        duration(out, &lag.total());
        duration(out, &lag.clock_error());
    });
    out.option(rare.as_deref(), |out, rare| out.item(|out| put_rare(out, rare)));
}

fn put_rare(out: &mut Encoder<'_>, rare: &Rare) {
    let Rare {
        connect,
        tls,
        reconnects,
        accept_length,
        cached_details,
        target,
        routed_experts,
        retries,
    } = rare;
    out.number(*reconnects);
    out.option(*connect, |out, time| out.number(nanos(time)));
    out.option(*tls, |out, time| out.number(nanos(time)));
    let told = accept_length.filter(|length| !length.is_nan());
    out.option(told, |out, length| out.raw(&length.to_le_bytes()));
    out.option(cached_details.as_ref(), |out, details| {
        let CachedDetails { device, host, storage, storage_backend } = details;
        out.item(|out| {
            out.number(*device);
            out.number(*host);
            out.option(*storage, Encoder::number);
            out.option(storage_backend.as_deref(), |out, name| out.bytes(name.as_bytes()));
        });
    });
    out.option(*target, Encoder::number);
    out.option(routed_experts.as_deref(), |out, experts| out.bytes(experts.as_bytes()));
    out.option(Some(*retries).filter(|count| *count > 0), Encoder::number);
}

/// `None` for bytes that no record is written as.
pub(super) fn decode(bytes: &[u8]) -> Option<Kept> {
    let from = &mut Decoder::new(bytes)?;
    let id = from.number()?;
    let base = from.number()?;
    let intended = Stamp(from.near(base)?);
    let end = Stamp(from.near(base)?);
    let prompt_len = from.narrow()?;
    let output_len = from.narrow()?;
    let count = from.narrow()?;
    let first = from.near(base / Chunks::RESOLUTION)?;
    let chunks = PackedChunks { count, first, bytes: from.bytes()?.into() };
    let chunks = Chunks::unpack(&chunks)?;
    let text = from.text()?.to_owned();
    let lateness = from.option(duration)?;
    let turnaround = from.option(duration)?;
    let stamp = |from: &mut Decoder<'_>| from.near(base).map(Stamp);
    let sent = from.option(stamp)?;
    let headers = from.option(stamp)?;
    let status = from.option(Decoder::narrow)?;
    let last_line = from.option(stamp)?;
    let pieces = from.option(list)?;
    let finish_reason = from.option(words)?;
    let prompt_tokens = from.option(Decoder::narrow)?;
    let completion_tokens = from.option(Decoder::narrow)?;
    let cached_tokens = from.option(Decoder::number)?;
    let server_latency = from
        .option(|from| from.array().map(f32::from_le_bytes).filter(|seconds| !seconds.is_nan()))?;
    let failure = from.option(|from| {
        let name: serde::de::value::StrDeserializer<'_, Error> = from.text()?.into_deserializer();
        Some(Failure { kind: FailureKind::deserialize(name).ok()?, detail: words(from)? })
    })?;
    let read_lag = from.option(|from| {
        ReadLag::from_parts(from.narrow()?, duration(from)?, duration(from)?, duration(from)?)
    })?;
    let rare = from.option(|from| from.item(rare))?.map(Box::new);
    let reply = Reply {
        sent,
        headers,
        status,
        chunks,
        last_line,
        text,
        keep_pieces: pieces.is_some(),
        pieces: pieces.unwrap_or_default(),
        finish_reason,
        prompt_tokens,
        completion_tokens,
        cached_tokens,
        server_latency,
        failure,
        read_lag,
        rare,
    };
    let dispatched = Stamp(base);
    let record =
        Record { id, intended, dispatched, lateness, turnaround, prompt_len, output_len, reply };
    Some(Kept { record, end })
}

fn rare(from: &mut Decoder<'_>) -> Option<Rare> {
    let mut rare = Reply::default().rare().clone();
    rare.reconnects = from.narrow()?;
    rare.connect = from.option(duration)?;
    rare.tls = from.option(duration)?;
    rare.accept_length =
        from.option(|from| from.array().map(f64::from_le_bytes).filter(|length| !length.is_nan()))?;
    rare.cached_details = from.option(|from| {
        from.item(|from| {
            Some(CachedDetails {
                device: from.number()?,
                host: from.number()?,
                storage: from.option(Decoder::number)?,
                storage_backend: from.option(words)?,
            })
        })
    })?;
    rare.target = from.option(Decoder::narrow)?;
    rare.routed_experts = from.option(words)?;
    rare.retries = from.option(Decoder::narrow)?.unwrap_or(0);
    Some(rare)
}

pub(super) fn encode_counted(counted: &Counted, out: &mut Vec<u8>) {
    let Counted { id, prompt_len, prompt, text, pieces } = counted;
    let out = &mut Encoder::new(out);
    out.number(*id);
    out.number(*prompt_len);
    out.option(*prompt, Encoder::number);
    out.option(*text, Encoder::number);
    out.option(pieces.as_ref(), |out, pieces| put_list(out, pieces));
}

pub(super) fn decode_counted(bytes: &[u8]) -> Option<Counted> {
    let from = &mut Decoder::new(bytes)?;
    Some(Counted {
        id: from.number()?,
        prompt_len: from.narrow()?,
        prompt: from.option(Decoder::narrow)?,
        text: from.option(Decoder::narrow)?,
        pieces: from.option(list)?,
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn duration(from: &mut Decoder<'_>) -> Option<Duration> {
    from.number().map(Duration::from_nanos)
}

fn words<T: for<'a> From<&'a str>>(from: &mut Decoder<'_>) -> Option<T> {
    from.text().map(T::from)
}

/// A list of numbers that mostly grow, or are alike.
fn put_list(out: &mut Encoder<'_>, list: &[u32]) {
    out.number(list.len() as u64);
    let mut before = 0;
    for number in list {
        out.near(u64::from(*number), before);
        before = u64::from(*number);
    }
}

fn list(from: &mut Decoder<'_>) -> Option<Vec<u32>> {
    let (count, mut before) = (from.number()?, 0);
    // Grows as there are numbers, whatever the count says.
    let mut list = Vec::new();
    for _ in 0..count {
        before = from.near(before)?;
        list.push(u32::try_from(before).ok()?);
    }
    Some(list)
}
