use super::*;

/// 1 ms per step and nothing else, so that times are counts of steps.
fn cost() -> CostModel {
    CostModel {
        step_us: 1_000.0,
        prefill_token_us: 0.0,
        decode_token_us: 0.0,
        context_token_us: 0.0,
        chunk_tokens: 10,
        ..CostModel::tiny()
    }
}

fn job(id: JobId, prompt_tokens: u32, output_tokens: u32) -> Job {
    Job { id, prompt_tokens, output_tokens, blocks: Vec::new() }
}

const MS: u64 = 1_000_000;

#[test]
fn a_job_that_arrives_during_a_step_joins_the_next_one() {
    let mut timeline = Timeline::new(cost());
    timeline.submit(100, job(1, 5, 3)).expect("fits");
    assert_eq!(timeline.step_end(), Some(100 + MS));
    timeline.submit(100 + MS / 2, job(2, 5, 1)).expect("fits");
    timeline.advance(100 + MS - 1);
    assert_eq!(timeline.progress(1).map(|progress| progress.generated), Some(0));
    timeline.advance(100 + MS);
    assert_eq!(timeline.progress(1).map(|progress| progress.generated), Some(1));
    assert_eq!(timeline.progress(2).map(|progress| progress.finished), Some(false));
    timeline.advance(100 + 2 * MS);
    assert_eq!(timeline.progress(2).map(|progress| progress.finished), Some(true));
}

#[test]
fn asking_late_does_not_move_the_steps() {
    let mut often = Timeline::new(cost());
    let mut seldom = Timeline::new(cost());
    for timeline in [&mut often, &mut seldom] {
        timeline.submit(0, job(1, 35, 4)).expect("fits");
    }
    for now in 0..2_000 {
        often.advance(now * 3_000);
    }
    seldom.advance(1_999 * 3_000);
    assert_eq!(often.progress(1), seldom.progress(1));
    assert_eq!(often.step_end(), seldom.step_end());
    // 4 steps of prefill, the last of which gives the first token, then one token per step.
    assert_eq!(often.progress(1).map(|progress| progress.generated), Some(2));
    // A job that comes to an idle engine starts at its arrival.
    seldom.advance(100 * MS);
    assert_eq!(seldom.step_end(), None);
    seldom.submit(123 * MS, job(2, 1, 1)).expect("fits");
    assert_eq!(seldom.step_end(), Some(124 * MS));
}

#[test]
fn a_forgotten_job_leaves_the_engine() {
    let mut timeline = Timeline::new(cost());
    timeline.submit(0, job(1, 1, 1_000)).expect("fits");
    timeline.submit(0, job(2, 1, 2)).expect("fits");
    timeline.forget(MS, 1);
    timeline.advance(10 * MS);
    assert_eq!(timeline.progress(1), None);
    assert_eq!(timeline.progress(2).map(|progress| progress.finished), Some(true));
    assert_eq!(timeline.step_end(), None);
}
