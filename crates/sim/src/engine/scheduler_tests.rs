use super::*;
use crate::engine::{Speculative, block_hashes};
use proptest::prelude::*;

/// Round numbers: 1 ms per step, 10 µs per prompt token, 100 µs per decoded one, 1 µs of context.
fn cost() -> CostModel {
    CostModel {
        step_us: 1_000.0,
        prefill_token_us: 10.0,
        decode_token_us: 100.0,
        context_token_us: 1.0,
        chunk_tokens: 100,
        max_running: 4,
        kv_tokens: 1_000,
        block_tokens: 10,
        speculative: None,
        seed: 1,
    }
}

fn job(id: JobId, prompt_tokens: u32, output_tokens: u32) -> Job {
    Job { id, prompt_tokens, output_tokens, blocks: Vec::new() }
}

/// A job whose prompt is this text, one token per byte.
fn text_job(id: JobId, text: &str, output_tokens: u32) -> Job {
    let blocks = block_hashes(text.as_bytes(), 10);
    Job { blocks, ..job(id, text.len() as u32, output_tokens) }
}

fn micros(report: &StepReport) -> u64 {
    report.took.as_micros() as u64
}

/// Steps until idle; returns each step's time in microseconds and the (job, tokens) it gave.
fn run(engine: &mut Engine) -> Vec<(u64, Vec<(JobId, u32)>)> {
    std::iter::from_fn(|| engine.step())
        .map(|report| {
            let gave = report.advanced.iter().map(|advance| (advance.job, advance.tokens));
            (micros(&report), gave.collect())
        })
        .collect()
}

#[test]
fn a_long_prompt_is_prefilled_in_chunks_and_then_decoded() {
    let mut engine = Engine::new(cost());
    engine.submit(job(7, 250, 3)).expect("fits");
    assert_eq!(
        run(&mut engine),
        [
            (2_000, vec![]),
            (2_000, vec![]),
            (1_500, vec![(7, 1)]),
            (1_000 + 100 + 251, vec![(7, 1)]),
            (1_000 + 100 + 252, vec![(7, 1)]),
        ]
    );
    assert_eq!((engine.running(), engine.kv_used(), engine.totals().steps), (0, 0, 5));
}

#[test]
fn decoding_and_prefill_share_a_step() {
    let mut engine = Engine::new(cost());
    engine.submit(job(1, 50, 2)).expect("fits");
    assert_eq!(engine.step().map(|report| micros(&report)), Some(1_500));
    engine.submit(job(2, 80, 1)).expect("fits");
    let report = engine.step().expect("work");
    assert_eq!(micros(&report), 1_000 + 800 + 100 + 51);
    assert_eq!((report.prefill_tokens, report.decode_tokens, report.context_tokens), (80, 1, 51));
    assert!(report.advanced.iter().all(|advance| advance.finished));
}

#[test]
fn jobs_wait_in_line_for_memory() {
    let mut engine = Engine::new(cost());
    for (id, prompt) in [(1, 590), (2, 590), (3, 10)] {
        engine.submit(job(id, prompt, 10)).expect("fits");
    }
    let steps = run(&mut engine);
    let order: Vec<JobId> = steps.iter().flat_map(|(_, gave)| gave).map(|(job, _)| *job).collect();
    let last = |id| order.iter().rposition(|job| *job == id);
    let first = |id| order.iter().position(|job| *job == id);
    assert!(last(1) < first(2), "job 2 must wait until job 1 is done: {order:?}");
    assert!(first(2) < last(3), "job 3 must not overtake job 2: {order:?}");
    let too_large = engine.submit(job(4, 999, 2));
    assert_eq!(too_large, Err(TooLarge { needed: 1_001, capacity: 1_000 }));
}

#[test]
fn at_most_max_running_jobs_run() {
    let mut engine = Engine::new(cost());
    for id in 0..6 {
        engine.submit(job(id, 10, 5)).expect("fits");
    }
    engine.step();
    assert_eq!((engine.running(), engine.waiting()), (4, 2));
}

#[test]
fn a_repeated_prefix_is_found_but_its_last_token_is_computed() {
    let mut engine = Engine::new(cost());
    let text = "0123456789".repeat(10);
    engine.submit(text_job(1, &text, 1)).expect("fits");
    run(&mut engine);
    engine.submit(text_job(2, &text, 1)).expect("fits");
    let report = engine.step().expect("work");
    assert_eq!((report.prefill_tokens, report.advanced[0].cached_tokens), (10, 90));
    // Only as far as the prompts agree, in whole blocks.
    let other = format!("{}x", &text[..55]);
    engine.submit(text_job(3, &other, 1)).expect("fits");
    assert_eq!(engine.step().expect("work").advanced[0].cached_tokens, 50);
    assert_eq!(engine.totals().cached_tokens, 140);
    engine.flush_cache();
    engine.submit(text_job(4, &text, 1)).expect("fits");
    assert_eq!(engine.step().expect("work").advanced[0].cached_tokens, 0);
}

#[test]
fn the_prefix_used_longest_ago_makes_room() {
    let mut engine = Engine::new(cost());
    let texts = ["a".repeat(400), "b".repeat(400), "c".repeat(400)];
    for (id, text) in texts.iter().enumerate() {
        engine.submit(text_job(id as u64, text, 10)).expect("fits");
        run(&mut engine);
    }
    let mut cached = |id, text: &str| {
        engine.submit(text_job(id, text, 10)).expect("fits");
        let mut found = 0;
        while let Some(report) = engine.step() {
            found = report.advanced.first().map_or(found, |advance| advance.cached_tokens);
        }
        found
    };
    // 1000 tokens hold the newest prompt with its output and what is left of the one before.
    assert_eq!(cached(10, &texts[2]), 390);
    assert_eq!(cached(11, &texts[1]), 390);
    assert!(cached(12, &texts[0]) < 390);
}

#[test]
fn drafts_are_accepted_as_their_probability_says() {
    let speculative = |acceptance| {
        let speculative = Some(Speculative { draft_tokens: 3, acceptance });
        let mut engine = Engine::new(CostModel { speculative, ..cost() });
        engine.submit(job(1, 10, 10)).expect("fits");
        (run(&mut engine), engine.totals())
    };
    let (steps, totals) = speculative(1.0);
    let tokens: Vec<u32> = steps.iter().flat_map(|(_, gave)| gave).map(|(_, n)| *n).collect();
    assert_eq!(tokens, [1, 4, 4, 1]);
    assert_eq!(steps[1].0, 1_000 + 4 * 100 + 11, "the draft is verified as a whole");
    assert_eq!((totals.drafts, totals.drafted, totals.accepted), (3, 9, 9));
    let (steps, totals) = speculative(0.0);
    assert_eq!((steps.len(), totals.accepted), (10, 0));
}

#[test]
fn an_aborted_job_frees_its_memory() {
    let mut engine = Engine::new(cost());
    engine.submit(job(1, 900, 50)).expect("fits");
    engine.submit(job(2, 900, 1)).expect("fits");
    engine.step();
    assert_eq!((engine.running(), engine.waiting()), (1, 1));
    engine.abort(1);
    engine.abort(99);
    let steps = run(&mut engine);
    assert_eq!(steps.last().map(|(_, gave)| gave.clone()), Some(vec![(2, 1)]));
    assert_eq!(engine.kv_used(), 0);
}

fn any_cost() -> impl Strategy<Value = CostModel> {
    let speculative = proptest::option::of((1u32..5, 0.0..=1.0f64)).prop_map(|pair| {
        pair.map(|(draft_tokens, acceptance)| Speculative { draft_tokens, acceptance })
    });
    (1u32..50, 1u32..5, 60u64..300, 0u32..12, speculative).prop_map(
        |(chunk_tokens, max_running, kv_tokens, block_tokens, speculative)| CostModel {
            chunk_tokens,
            max_running,
            kv_tokens,
            block_tokens,
            speculative,
            ..cost()
        },
    )
}

proptest! {
    /// Whatever is submitted and aborted: memory is never overrun, every job that was not aborted
    /// gets exactly its tokens, and in the end all memory is free.
    #[test]
    fn every_job_gets_its_tokens_within_the_memory(
        cost in any_cost(),
        jobs in prop::collection::vec((0usize..4, 0u32..40, 0u32..20, 0u8..8), 0..30),
    ) {
        let prefixes = ["", "the same words again and again", "the same words, though not all", "x"];
        let capacity = cost.kv_tokens;
        let block = cost.block_tokens as usize;
        let mut engine = Engine::new(cost);
        let mut wanted = std::collections::BTreeMap::new();
        let mut given = std::collections::BTreeMap::new();
        let mut note = |report: StepReport| {
            for advance in report.advanced {
                *given.entry(advance.job).or_insert(0) += advance.tokens;
            }
        };
        for (id, (prefix, more, output, then)) in jobs.into_iter().enumerate() {
            let id = id as u64;
            let text = format!("{}{}", prefixes[prefix], "y".repeat(more as usize));
            let blocks = block_hashes(text.as_bytes(), block);
            let job = Job { blocks, ..job(id, text.len() as u32, output) };
            if engine.submit(job).is_ok() {
                wanted.insert(id, output);
            }
            match then {
                0 => {
                    engine.abort(id / 2);
                    wanted.remove(&(id / 2));
                }
                steps => for _ in 1..steps {
                    if let Some(report) = engine.step() { note(report) }
                    prop_assert!(engine.kv_used() <= capacity);
                }
            }
        }
        while let Some(report) = engine.step() {
            note(report);
            prop_assert!(engine.kv_used() <= capacity);
        }
        prop_assert_eq!((engine.running(), engine.waiting(), engine.kv_used()), (0, 0, 0));
        for (id, output) in wanted {
            prop_assert_eq!(given.get(&id).copied().unwrap_or(0), output, "job {}", id);
        }
    }
}
