use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::bail;
use kagzi_proto::v1::{self, StepStatus, report};

use super::scripted_server::{
    ScriptedServer, assert_parked, assign, entry, failed_step, recorded, retry_in, run_output,
};
use crate::retry_policy::RetryPolicy;
use crate::run::uplink::Verdict;

#[tokio::test(start_paused = true)]
async fn a_failed_step_that_is_retried_parks_the_run_unseen_by_user_code() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let policy = RetryPolicy { maximum_interval: Some(Duration::from_secs(9)), ..Default::default() };
        let step = ctx.step("charge").retries(5).retry_policy(policy);
        let result = step.run(|_| async { bail!("card reader is off") }).await;
        let value: u64 = result.expect("user code saw an error that is retried");
        Ok(value)
    });

    let (failed, failure) = failed_step(server.answer(retry_in(60)).await);
    assert_parked(server.commit_end().await);

    assert_eq!((failed.attempt, failure.code.as_str()), (1, "ERROR"));
    assert_eq!(failure.message, "card reader is off");
    let policy = failed.retry_policy.unwrap();
    assert_eq!((policy.maximum_attempts, policy.maximum_interval_ms), (Some(5), Some(9000)));
    assert_eq!(policy.initial_interval_ms, None, "only the step's own fields are sent");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_parks_the_run() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.sleep(Duration::from_secs(60)).await?;
        panic!("the sleep did not park the run");
    });

    let remaining = Duration::from_secs(60);
    let report::Body::SleepScheduled(sleep) = server.answer(Verdict::Sleeping { remaining }).await else {
        panic!("no sleep was scheduled");
    };
    assert_parked(server.commit_end().await);

    assert_eq!(sleep.duration_ms, 60_000);
    assert_eq!(sleep.step.unwrap().path, "sleep");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_due_is_over_and_the_run_goes_on() {
    let journal = vec![entry("sleep#2", 1, StepStatus::Sleeping), entry("sleep", 0, StepStatus::Completed)];
    let mut server = ScriptedServer::execute(assign("5", journal), |ctx, input| async move {
        ctx.sleep(Duration::from_secs(60)).await?;
        ctx.sleep(Duration::from_secs(60)).await?;
        Ok(input)
    });

    // Its end has a place in the record, so the server is asked although no time is left.
    assert!(matches!(server.commit().await, report::Body::SleepOver(_)));
    assert_eq!(run_output(server.commit_end().await), 5);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_of_no_time_does_not_hang() {
    let mut server = ScriptedServer::execute(assign("5", vec![]), |ctx, input| async move {
        ctx.sleep(Duration::ZERO).await?;
        Ok(input)
    });

    server.answer(Verdict::Sleeping { remaining: Duration::ZERO }).await;
    assert!(matches!(server.commit().await, report::Body::SleepOver(_)));

    assert_eq!(run_output(server.commit_end().await), 5);
}

#[tokio::test(start_paused = true)]
async fn a_pending_step_that_is_not_due_parks_again() {
    let pending = v1::JournalEntry { remaining_ms: 5000, ..entry("charge", 0, StepStatus::Pending) };
    let server = ScriptedServer::execute(assign("0", vec![pending]), |ctx, _| async move {
        ctx.run("charge", async { panic!("ran a step before its time") }).await
    });

    assert_parked(server.commit_end().await);
}

#[tokio::test(start_paused = true)]
async fn a_pending_step_that_is_due_runs_with_the_next_attempt_number() {
    let pending = v1::JournalEntry { attempts: 3, ..entry("charge", 0, StepStatus::Pending) };
    let mut server = ScriptedServer::execute(assign("0", vec![pending]), |ctx, _| async move {
        ctx.step("charge").run(|step| async move { Ok(u64::from(step.attempt())) }).await
    });

    assert_eq!(recorded(server.commit().await), ("charge".into(), 0, 4, "4".into()));
    assert_eq!(run_output(server.commit_end().await), 4);
}

#[tokio::test(start_paused = true)]
async fn a_retry_without_delay_happens_in_place() {
    let executions = Arc::new(AtomicU32::new(0));
    let counted = executions.clone();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let counted = counted.clone();
        async move {
            ctx.step("charge")
                .run(|step| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    async move { if step.attempt() < 2 { bail!("once") } else { Ok(9) } }
                })
                .await
        }
    });

    failed_step(server.answer(retry_in(0)).await);
    assert_eq!(recorded(server.commit().await).2, 2);
    assert_eq!(run_output(server.commit_end().await), 9);
    assert_eq!(executions.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_plain_future_is_retried_by_a_replay() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run("charge", async { bail!("down") }).await
    });

    failed_step(server.answer(retry_in(0)).await);

    assert_parked(server.commit_end().await);
}
