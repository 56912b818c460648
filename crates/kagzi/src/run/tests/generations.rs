//! A run that continues in place: what its worker says, and when it should.

use std::time::Duration;

use kagzi_proto::v1::{self, report};

use super::scripted_server::{ScriptedServer, assign, completed, recorded, run_output};
use crate::limits::{CONTINUE_AFTER_BYTES, CONTINUE_AFTER_ENDS};
use crate::run::context::WorkflowContext;
use crate::run::uplink::Verdict;

fn continued(body: report::Body) -> (String, usize) {
    let report::Body::RunContinued(continued) = body else { panic!("it did not continue: {body:?}") };
    let input = continued.input.unwrap().data;
    (String::from_utf8(input.to_vec()).unwrap(), continued.steps.len())
}

#[tokio::test(start_paused = true)]
async fn the_last_result_travels_with_the_word_and_paths_of_a_later_generation_are_its_own() {
    let later = v1::Assign { generation: 7, ..assign("1", vec![]) };
    let server = ScriptedServer::execute(later, |ctx, n| async move {
        let charged: u64 = ctx.run("charge", async move { Ok(n + 1) }).await?;
        assert_eq!(ctx.idempotency_key("charge"), "wf:r1:step:~7/charge");
        ctx.continue_as_new(&charged)
    });

    assert_eq!(continued(server.commit_end().await), ("2".to_owned(), 1));
}

/// A wait that the function has left behind is answered while the function ends.
#[tokio::test(start_paused = true)]
async fn a_signal_on_its_way_to_code_that_has_ended_is_given_back_before_the_run_continues() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let part = ctx.clone();
        let _listens = ctx.spawn(async move { part.signal::<u64>("item").await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        ctx.continue_as_new(&1)
    });

    let asked = server.next_report().await;
    assert!(matches!(asked.body, report::Body::SignalAwaited(_)), "{:?}", asked.body);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let signal = Some(v1::Payload { data: "7".into(), content_type: String::new() });
    let mut taken = v1::Waited { signal, ..Default::default() };
    taken.set_outcome(v1::WaitOutcome::Taken);
    asked.verdict.unwrap().send(Verdict::Waited(Box::new(taken))).unwrap();

    let closed = server.commit().await;
    assert!(matches!(closed, report::Body::StepClosed(_)), "{closed:?}");
    assert_eq!(continued(server.commit_end().await), ("1".to_owned(), 0));
}

/// After which of its steps the function is first told that it should continue; 0 = never.
async fn first_yes(ctx: WorkflowContext, steps: u64, result: usize) -> anyhow::Result<u64> {
    let mut first = 0;
    for n in 1..=steps {
        ctx.run::<String, _>("look", async move { Ok("x".repeat(result)) }).await?;
        if first == 0 && ctx.should_continue() {
            first = n;
        }
    }
    Ok(first)
}

fn journal(len: u64, result: &str) -> Vec<v1::JournalEntry> {
    let path = |n: u64| if n == 1 { "look".to_owned() } else { format!("look#{n}") };
    (1..=len).map(|n| completed(&path(n), n as u32 - 1, &format!("\"{result}\""))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_should_continue_after_so_many_results_live_as_in_every_replay() {
    let steps = CONTINUE_AFTER_ENDS + 2;
    for replayed in [CONTINUE_AFTER_ENDS - 1, CONTINUE_AFTER_ENDS, steps] {
        let assigned = assign("0", journal(replayed, "x"));
        let mut server = ScriptedServer::execute(assigned, move |ctx, _| first_yes(ctx, steps, 1));
        for _ in replayed..steps {
            recorded(server.commit().await);
        }
        assert_eq!(run_output(server.commit_end().await), CONTINUE_AFTER_ENDS, "{replayed} replayed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_should_continue_when_its_results_weigh_so_much_live_as_in_every_replay() {
    let result = 16 * 1024 * 1024;
    // The quotes weigh too, so the fourth one is enough.
    let (steps, expected) = (CONTINUE_AFTER_BYTES / result as u64 + 1, CONTINUE_AFTER_BYTES / result as u64);
    for replayed in [3, steps] {
        let assigned = assign("0", journal(replayed, &"x".repeat(result)));
        let mut server = ScriptedServer::execute(assigned, move |ctx, _| first_yes(ctx, steps, result));
        for _ in replayed..steps {
            recorded(server.commit().await);
        }
        assert_eq!(run_output(server.commit_end().await), expected, "{replayed} replayed");
    }
}
