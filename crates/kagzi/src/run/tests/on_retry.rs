use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus};
use parking_lot::Mutex;

use super::scripted_server::{
    ScriptedServer, assert_parked, assign, entry, failed_step, recorded, retry_in, run_output,
};
use crate::run::uplink::Verdict;
use crate::step_error::StepFailure;

type Calls = Arc<Mutex<Vec<(u32, String, Duration)>>>;

/// A run whose step fails once, with a hook that notes its calls.
fn failing_once(journal: Vec<v1::JournalEntry>) -> (ScriptedServer, Calls) {
    let calls = Calls::default();
    let noted = calls.clone();
    let server = ScriptedServer::execute(assign("0", journal), move |ctx, _| {
        let noted = noted.clone();
        async move {
            let charge = ctx.step("charge").on_retry(move |attempt, error: &StepFailure, delay| {
                noted.lock().push((attempt, error.code.clone(), delay));
            });
            let busy = || StepFailure::new("BUSY", "the reader is busy");
            charge
                .run(|step| async move { if step.attempt() == 1 { Err(busy().into()) } else { Ok(1) } })
                .await
        }
    });
    (server, calls)
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_told_of_a_scheduled_retry_before_the_run_is_parked() {
    let (mut server, calls) = failing_once(vec![]);

    failed_step(server.answer(retry_in(60)).await);
    assert_parked(server.commit_end().await);

    assert_eq!(*calls.lock(), [(1, "BUSY".to_owned(), Duration::from_secs(60))]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_the_run_over_tells_its_hook_of_the_retry() {
    let failure = v1::Failure { code: "TIMED_OUT".into(), ..Default::default() };
    let pending =
        v1::JournalEntry { failure: Some(Box::new(failure)), ..entry("charge", 0, StepStatus::Pending) };
    let (mut server, calls) = failing_once(vec![pending]);

    assert_eq!(recorded(server.commit().await).2, 2);
    server.commit_end().await;

    assert_eq!(*calls.lock(), [(1, "TIMED_OUT".to_owned(), Duration::ZERO)]);
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_not_told_of_a_final_failure() {
    let (mut server, calls) = failing_once(vec![]);

    failed_step(
        server.answer(Verdict::Final { attempts: 1, finality: v1::Finality::Exhausted.into() }).await,
    );
    server.commit_end().await;

    assert!(calls.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_hook_does_not_harm_the_run() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let charge = ctx.step("charge").on_retry(|_, _, _| panic!("the hook is broken"));
        charge
            .run(|step| async move { if step.attempt() == 1 { anyhow::bail!("once") } else { Ok(1) } })
            .await
    });

    failed_step(server.answer(retry_in(0)).await);
    recorded(server.commit().await);

    assert_eq!(run_output(server.commit_end().await), 1);
}
