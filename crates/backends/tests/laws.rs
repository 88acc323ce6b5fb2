//! Laws of the decoders, on arbitrary bytes and on damaged streams.

use proptest::prelude::*;
use servebench_backends::fuzzing;

/// Pieces of streams that are mostly well-formed, so that random sequences get deep into the decoders.
const PIECES: &[&str] = &[
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"reasoning\":\"r\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[{\"text\":\"\\ud83d\"}],\"usage\":{\"completion_tokens\":2}}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":3.0}}\r\n\r\n",
    "data: {\"text\":\"ab\",\"meta_info\":{\"completion_tokens\":2}}\n\n",
    "data: {\"text\":\"abc\",\"meta_info\":{\"completion_tokens\":3,\"finish_reason\":{\"type\":\"length\"}}}\n\n",
    "data: {\"text\":\"z\",\"meta_info\":{\"cost\":NaN}}\n\n",
    "[{\"text\":\"a\",\"meta_info\":{\"completion_tokens\":1}}]\n",
    "{\"choices\":[{\"message\":{\"content\":\"whole\"}}]}",
    "{\n\"choices\": [",
    "]}\n",
    "data: {\"text_output\":\"a\",\"model_name\":\"ensemble\"}\n\n",
    "data:{\"text_output\":\"ab\"}\n\n",
    "{\"data\":[{\"embedding\":[0.5,NaN]}],\"usage\":{\"prompt_tokens\":3}}",
    "{\"data\":[{\"embedding\":\"AAAA\"},{}]}",
    "{\"data\":[{\"data\":[[0.5]]}],\"results\":[{\"relevance_score\":1}]}",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
    "data: {\"type\":\"response.reasoning_text.delta\",\"delta\":\"\\ud83d\"}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"output_tokens\":2}}}\n\n",
    "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"no\"}}}\n\n",
    "{\"object\":\"response\",\"output\":[{\"content\":[{\"text\":\"a\"}]}]}",
    "data: {\"error\":{\"message\":\"no\"}}\n\n",
    "event: error\n",
    "event: ping\ndata: x\n\n",
    "data: [DONE]\n",
    "data:\n",
    "data: {\n",
    ": ping\n",
    "\u{FEFF}",
    "\r",
    "\n",
    "\n\n",
    " ",
    "data: \"",
    "\\",
];

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

/// Runs a body on `bytes` behind a seed for its cuts.
fn run(body: fn(&[u8]), seed: u8, bytes: &[u8]) {
    body(&[&[seed], bytes].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn cuts_do_not_change_events(seed in any::<u8>(), bytes in stream()) {
        run(fuzzing::sse, seed, &bytes);
    }

    #[test]
    fn cuts_do_not_change_replies(seed in any::<u8>(), bytes in stream()) {
        run(fuzzing::native_frames, seed, &bytes);
        run(fuzzing::completions_frames, seed, &bytes);
        run(fuzzing::chat_frames, seed, &bytes);
        run(fuzzing::triton_frames, seed, &bytes);
        run(fuzzing::embeddings_answer, seed, &bytes);
        run(fuzzing::responses_frames, seed, &bytes);
        run(fuzzing::transcription_frames, seed, &bytes);
        run(fuzzing::pooling_answer, seed, &[&[seed], bytes.as_slice()].concat());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzzing::sse(&bytes);
        fuzzing::native_frames(&bytes);
        fuzzing::completions_frames(&bytes);
        fuzzing::chat_frames(&bytes);
        fuzzing::responses_frames(&bytes);
        fuzzing::transcription_frames(&bytes);
        fuzzing::pooling_answer(&bytes);
    }
}

#[test]
fn a_line_end_cut_in_two_is_one_line_end() {
    for seed in 0..=255 {
        run(fuzzing::sse, seed, b"{\r\n\"a\":1\r\n}\r\n");
        run(fuzzing::sse, seed, b"data: {\r\ndata: \"a\":1}\r\n\r\ndata: 2\r\r\n\n");
    }
}
