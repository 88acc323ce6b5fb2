//! Decodes a number of replies, for a program that counts its instructions: `replies BACKEND COUNT READ`.

use servebench_backends::{BackendKind, GenerateOptions};
use servebench_benches::{TOKENS, decode, stream};
use servebench_core::Request;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().ok_or("usage: replies BACKEND COUNT READ");
    let kind: BackendKind = word()?.parse()?;
    let (count, read): (u32, usize) = (word()?.parse()?, word()?.parse()?);
    let protocol = kind.protocol(GenerateOptions { model: "m".into(), ..Default::default() });
    let (bytes, request) = (stream(kind), Request { output_len: TOKENS, ..Request::default() });
    for _ in 0..count {
        let reply = decode(protocol.as_ref(), &request, bytes.as_bytes(), read);
        assert_eq!((reply.chunks.len(), reply.failure), (TOKENS as usize, None));
    }
    Ok(())
}
