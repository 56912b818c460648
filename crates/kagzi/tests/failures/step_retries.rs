use std::time::Duration;

use anyhow::{bail, ensure};
use kagzi::client::{Reason, RunStatus};
use kagzi::testing::TestEngine;
use kagzi::workflow::{Backoff, Finality, NonRetryableError, RetryAfterError, StepError, StepFailure};
use kagzi::{RetryPolicy, WorkflowContext};

use crate::{Count, at_once, seconds, start};

/// An engine with a workflow of one step, `charge`, that fails this way as often as it is executed.
async fn failing(policy: RetryPolicy, error: fn() -> anyhow::Error) -> (TestEngine, Count) {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let executions = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let (policy, executions) = (policy.clone(), executions.clone());
        async move {
            let charge = ctx.step("charge").retry_policy(policy).run(|_| {
                executions.up();
                async move { Err::<u32, _>(error()) }
            });
            charge.await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    (engine, count)
}

/// How the step ended, told by a workflow that catches its error.
async fn caught(policy: RetryPolicy, error: fn() -> anyhow::Error) -> (Finality, String, u32) {
    let engine = TestEngine::start().await;
    let function = move |ctx: WorkflowContext, (): ()| {
        let policy = policy.clone();
        async move {
            let charge =
                ctx.step("charge").retry_policy(policy).run(|_| async move { Err::<u32, _>(error()) });
            let error = charge.await.unwrap_err();
            let error = error.downcast_ref::<StepError>().expect("a typed error").clone();
            Ok((format!("{:?}", error.finality), error.code, error.attempts))
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();
    let result = start(&engine, "w").await.result::<(String, String, u32)>().await.unwrap();
    let all = [
        Finality::NonRetryable,
        Finality::Denied,
        Finality::Exhausted,
        Finality::RetryTimeout,
        Finality::RunBudget,
    ];
    let finality = all.into_iter().find(|finality| format!("{finality:?}") == result.0).unwrap();
    (finality, result.1, result.2)
}

#[tokio::test]
async fn two_failures_and_a_success_are_three_attempts_at_the_policys_times() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let executions = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let executions = executions.clone();
        async move {
            let charge = ctx.step("charge").run(|step| {
                executions.up();
                async move {
                    ensure!(step.attempt() == 3, "the reader is busy");
                    Ok(step.attempt())
                }
            });
            charge.await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    let run = start(&engine, "w").await;

    // By default 1 s after the first failure, 2 s after the second.
    engine.settle().await;
    assert_eq!(count.get(), 1);
    let waiting = run.describe().await.unwrap();
    assert_eq!((waiting.status, waiting.reason), (RunStatus::Pending, Some(Reason::Retry)));
    assert_eq!(waiting.worker_id, None, "nobody is held while a retry waits");
    engine.advance(Duration::from_millis(999));
    engine.settle().await;
    assert_eq!(count.get(), 1);
    engine.advance(Duration::from_millis(1));
    engine.settle().await;
    assert_eq!(count.get(), 2);
    engine.advance(Duration::from_millis(1999));
    engine.settle().await;
    assert_eq!(count.get(), 2);
    engine.advance(Duration::from_millis(1));

    assert_eq!(run.result::<u32>().await.unwrap(), 3);
    assert_eq!(count.get(), 3);
    engine.history(run.run_id()).await.assert_completed().assert_attempts("charge", 3);
}

#[tokio::test]
async fn a_non_retryable_error_is_the_end_after_one_attempt() {
    let stolen = || NonRetryableError::new("card stolen").into();
    let (engine, count) = failing(RetryPolicy::CRITICAL, stolen).await;
    let run = start(&engine, "w").await;

    let error = run.result::<u32>().await.unwrap_err();

    assert!(error.to_string().contains("step 'charge' failed after 1 attempt(s): card stolen"), "{error}");
    assert_eq!(count.get(), 1);
    engine.history(run.run_id()).await.assert_failed("NON_RETRYABLE");
}

#[tokio::test]
async fn the_lists_of_a_policy_decide_by_code() {
    let declined = || StepFailure::new("DECLINED", "no money").into();
    let busy = || StepFailure::new("BUSY", "try later").into();
    let deny = at_once().maximum_attempts(3).non_retryable_errors(["DECLINED"]);
    let allow = at_once().maximum_attempts(3).retryable_errors(["BUSY"]);

    assert_eq!(caught(deny.clone(), declined).await, (Finality::Denied, "DECLINED".into(), 1));
    assert_eq!(caught(deny, busy).await, (Finality::Exhausted, "BUSY".into(), 3));
    assert_eq!(caught(allow.clone(), declined).await, (Finality::Denied, "DECLINED".into(), 1));
    assert_eq!(caught(allow, busy).await, (Finality::Exhausted, "BUSY".into(), 3));
}

#[tokio::test]
async fn budgets_of_the_step_and_of_the_run_are_named() {
    let down = || anyhow::anyhow!("down");
    let late = RetryPolicy::default().backoff(Backoff::Fixed).maximum_attempts(-1).retry_timeout(seconds(3));
    let few = at_once().run_retries_max(2);

    let (finality, _, attempts) = caught(late, down).await;
    assert_eq!((finality, attempts), (Finality::RetryTimeout, 4));
    assert_eq!(caught(few, down).await, (Finality::RunBudget, "ERROR".into(), 3));
}

#[tokio::test]
async fn retry_after_overrides_the_policys_delay() {
    let limited = || RetryAfterError::from_header("slow down", "120", seconds(1)).into();
    let (engine, count) = failing(RetryPolicy::QUICK.retry_timeout(seconds(3600)), limited).await;
    let run = start(&engine, "w").await;

    engine.settle().await;
    engine.advance(seconds(119));
    engine.settle().await;
    assert_eq!(count.get(), 1);
    engine.advance(seconds(1));
    engine.settle().await;
    assert_eq!(count.get(), 2);
    engine.advance(seconds(120));

    run.result::<u32>().await.unwrap_err();
    engine.history(run.run_id()).await.assert_failed("RETRY_AFTER").assert_attempts("charge", 3);
}

#[tokio::test]
async fn a_steps_policy_wins_over_the_workflows_field_by_field() {
    let (engine, count) =
        failing(RetryPolicy::default().initial_interval(seconds(3)), || anyhow::anyhow!("down")).await;
    engine.skip_time();
    let began = engine.now();
    let workflows = RetryPolicy::default().backoff_coefficient(1.0).initial_interval(seconds(50));

    let start = engine.client().workflow("w", "q", ()).retry_policy(workflows).retries(3);
    start.await.unwrap().result::<u32>().await.unwrap_err();

    assert_eq!(count.get(), 3, "the workflow's word, because the step has none");
    assert_eq!(engine.now().duration_since(began).unwrap(), seconds(3 + 3), "the step's own interval");
}

#[tokio::test]
async fn a_wait_that_the_error_asks_for_may_be_longer_than_the_default_budget() {
    let hour = || RetryAfterError::new("busy", seconds(3600)).into();
    let (engine, count) = failing(RetryPolicy::default().maximum_attempts(3), hour).await;
    engine.skip_time();
    let began = engine.now();

    start(&engine, "w").await.result::<u32>().await.unwrap_err();

    assert_eq!(count.get(), 3);
    assert_eq!(engine.now().duration_since(began).unwrap(), seconds(2 * 3600));
}

#[tokio::test]
async fn a_schedule_is_followed_to_the_second() {
    let schedule = RetryPolicy::default().schedule([seconds(5), seconds(50)]).maximum_attempts(3);
    let (engine, count) = failing(schedule, || anyhow::anyhow!("down")).await;
    let run = start(&engine, "w").await;

    for (wait, executions) in [(5, 1), (50, 2)] {
        engine.settle().await;
        engine.advance(seconds(wait - 1));
        engine.settle().await;
        assert_eq!(count.get(), executions);
        engine.advance(seconds(1));
    }

    run.result::<u32>().await.unwrap_err();
    assert_eq!(count.get(), 3);
}

/// What a function sees of a step that failed for good: at first, and when it is executed again after a
/// sleep.
async fn seen_twice(policy: RetryPolicy, failure: fn() -> StepFailure) -> (String, String) {
    let engine = TestEngine::start().await;
    let function = move |ctx: WorkflowContext, (): ()| {
        let policy = policy.clone();
        async move {
            let charge = ctx.step("charge").retry_policy(policy);
            let error = charge.run(|_| async move { Err::<u32, _>(failure().into()) }).await.unwrap_err();
            let seen = format!("{:?}", error.downcast_ref::<StepError>().unwrap());
            let at_first: String = ctx.run("note", async { Ok(seen.clone()) }).await?;
            ctx.sleep(seconds(1)).await?;
            Ok((at_first, seen))
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();
    start(&engine, "w").await.result().await.unwrap()
}

#[tokio::test]
async fn a_final_failure_is_the_same_word_for_word_when_the_function_is_executed_again() {
    let declined = || StepFailure::new("DECLINED", "no money").class("permanent").details([450]);

    let (at_first, again) = seen_twice(RetryPolicy::NONE, declined).await;
    assert!(at_first.contains("permanent") && at_first.contains("450"), "{at_first}");
    assert_eq!(at_first, again);

    let (at_first, again) =
        seen_twice(RetryPolicy::NONE, || StepFailure::new("X", "x").non_retryable()).await;
    assert_eq!(at_first, again);
}

#[tokio::test]
async fn the_reason_of_a_final_failure_is_the_same_when_the_function_is_executed_again() {
    let declined = || StepFailure::new("DECLINED", "no money");
    let too_late = RetryPolicy { retry_timeout: Some(Duration::ZERO), ..RetryPolicy::default() };
    let used_up = RetryPolicy { run_retries_max: Some(0), ..RetryPolicy::default() };

    for (policy, reason) in [
        (RetryPolicy::default().non_retryable_errors(["DECLINED"]), "Denied"),
        (too_late, "RetryTimeout"),
        (used_up, "RunBudget"),
        (RetryPolicy::NONE, "Exhausted"),
    ] {
        let (at_first, again) = seen_twice(policy, declined).await;

        assert!(at_first.contains(reason), "{at_first}");
        assert_eq!(at_first, again);
    }
}

#[tokio::test]
async fn waiting_retries_are_found_by_reason_and_error_code() {
    let (engine, _) = failing(RetryPolicy::default(), || StepFailure::new("BUSY", "later").into()).await;
    let run = start(&engine, "w").await;
    engine.settle().await;
    let list = async |reason: Option<Reason>, error_code: &str| {
        let which = engine.client().runs().error_code(error_code);
        let which = if let Some(reason) = reason { which.reason(reason) } else { which };
        which.page("").await.unwrap().rows.len()
    };

    assert_eq!(list(Some(Reason::Retry), "").await, 1);
    assert_eq!(list(None, "BUSY").await, 1);
    assert_eq!(list(Some(Reason::Timer), "").await, 0);
    assert_eq!(list(Some(Reason::Retry), "OTHER").await, 0);
    let seen = run.describe().await.unwrap();
    assert_eq!(seen.status_detail, "attempt 1 of step 'charge' failed: later");
    let error = seen.error.expect("what it waits for after");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("BUSY", "later"));
}

#[tokio::test]
async fn the_retry_hook_is_called_once_per_retry_by_a_worker_that_lives() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let calls = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let calls = calls.clone();
        async move {
            let charge = ctx.step("charge").on_retry(move |attempt, _, _| assert_eq!(calls.up(), attempt));
            charge.run(|step| async move { if step.attempt() < 4 { bail!("down") } else { Ok(1) } }).await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();

    assert_eq!(start(&engine, "w").await.result::<u32>().await.unwrap(), 1);

    assert_eq!(count.get(), 3);
}

#[tokio::test]
async fn a_senseless_policy_of_a_step_fails_its_run_and_nothing_else() {
    let engine = TestEngine::start().await;
    let senseless = |ctx: WorkflowContext, (): ()| async move {
        let policy = RetryPolicy::default().backoff_coefficient(-1.0);
        ctx.step("charge")
            .retry_policy(policy)
            .run(|_| async { Err::<u32, _>(anyhow::anyhow!("down")) })
            .await
    };
    let sound = |ctx: WorkflowContext, (): ()| async move { ctx.run("ship", async { Ok(1) }).await };
    engine
        .work("q", |worker| {
            worker.register("senseless", senseless).register("sound", sound);
        })
        .await;
    engine.skip_time();

    let error = start(&engine, "senseless").await.result::<u32>().await.unwrap_err();

    assert!(error.to_string().contains("backoff_coefficient"), "{error}");
    assert_eq!(start(&engine, "sound").await.result::<u32>().await.unwrap(), 1);
}
