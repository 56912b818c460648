use std::time::Duration;

use kagzi_proto::v1;

use super::scripted_server::{
    ScriptedServer, assign, failed_step, recorded, retry_in, run_failure, run_output,
};
use crate::run::uplink::Verdict;
use crate::step_error::{Finality, NonRetryableError, StepError, StepFailure};

fn last(attempts: u32) -> Verdict {
    Verdict::Final { attempts, finality: 0 }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_step_with_the_panics_text() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run("charge", async { panic!("reader {} is gone", 7) }).await
    });

    let (_, failure) = failed_step(server.answer(last(5)).await);
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("PANIC", "reader 7 is gone"));
    assert!(!failure.non_retryable);

    assert_eq!(run_failure(server.commit_end().await).code, "PANIC");
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_of_a_closure_is_caught_too() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.step("charge").run(|_| -> std::future::Ready<_> { panic!("early") }).await
    });

    assert_eq!(failed_step(server.answer(last(1)).await).1.message, "early");
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_a_timeout() {
    let mut assigned = assign("0", vec![]);
    assigned.start_to_close_timeout_ms = 600_000;
    let mut server = ScriptedServer::execute(assigned, |ctx, _| async move {
        let forever = std::future::pending::<anyhow::Result<u64>>;
        let own = ctx.step("own").timeout(Duration::from_secs(30)).run(|_| forever()).await;
        assert_eq!(own.unwrap_err().downcast_ref::<StepError>().unwrap().code, "TIMED_OUT");
        ctx.run("inherited", forever()).await
    });

    let (failed, failure) = failed_step(server.answer(last(1)).await);
    assert_eq!(failure.message, "step 'own' timed out after 30s");
    assert_eq!((failure.code.as_str(), failed.elapsed_ms), ("TIMED_OUT", 30_000));
    let (_, failure) = failed_step(server.answer(last(1)).await);
    assert_eq!(failure.message, "step 'inherited' timed out after 600s");
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_reaches_user_code_which_may_go_on() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let refused = async { Err(NonRetryableError::new("stolen").into()) };
        let error = ctx.run::<u64, _>("charge", refused).await.unwrap_err();
        let step = error.downcast_ref::<StepError>().expect("a typed error");
        assert_eq!((step.code.as_str(), step.attempts), ("NON_RETRYABLE", 3));
        ctx.run("apologise", async { Ok(1) }).await
    });

    assert!(failed_step(server.answer(last(3)).await).1.non_retryable);
    assert_eq!(recorded(server.commit().await).0, "apologise");
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_error_says_why_there_was_no_further_attempt() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let denied = async { Err(StepFailure::new("DECLINED", "no money").class("permanent").into()) };
        let error = ctx.run::<u64, _>("charge", denied).await.unwrap_err();
        let step = error.downcast_ref::<StepError>().unwrap();
        assert_eq!((step.finality, step.class.as_str()), (Finality::Denied, "permanent"));
        assert!(step.is_non_retryable() && !step.is_exhausted());
        ctx.run("ship", async { anyhow::bail!("down") }).await
    });

    let denied = Verdict::Final { attempts: 1, finality: v1::Finality::Denied.into() };
    assert_eq!(failed_step(server.answer(denied).await).1.class, "permanent");
    let exhausted = Verdict::Final { attempts: 5, finality: v1::Finality::Exhausted.into() };
    failed_step(server.answer(exhausted).await);

    let failure = run_failure(server.commit_end().await);
    assert_eq!(failure.message, "step 'ship' failed after 5 attempt(s): down");
}

#[tokio::test(start_paused = true)]
async fn a_result_above_the_limit_fails_the_step_for_good_before_it_is_sent() {
    let assigned = assign("0", vec![]);
    let mut server = ScriptedServer::execute_with_payload_limit(assigned, 10, |ctx, _| async move {
        let text: String = ctx.run("big", async { Ok("x".repeat(9)) }).await?;
        Ok(text.len() as u64)
    });

    let (_, failure) = failed_step(server.answer(last(1)).await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("PAYLOAD_TOO_LARGE", true));
    let expected = "the step's result exceeds maximum size of 10 bytes (11 bytes)";
    assert!(failure.message.starts_with(expected), "{}", failure.message);
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn details_above_the_limit_are_left_out_of_the_failure() {
    let assigned = assign("0", vec![]);
    let mut server = ScriptedServer::execute_with_payload_limit(assigned, 10, |ctx, _| async move {
        let failure = StepFailure::new("DECLINED", "no money").details("x".repeat(9));
        ctx.run("charge", async { Err(failure.into()) }).await
    });

    let (_, failure) = failed_step(server.answer(last(1)).await);

    assert_eq!((failure.code.as_str(), failure.details), ("DECLINED", None));
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_above_the_limit_fails_the_step_for_good_and_the_run_may_go_on() {
    let assigned = assign("0", vec![]);
    let mut server = ScriptedServer::execute_with_payload_limit(assigned, 10, |ctx, _| async move {
        let big = ctx.run("big", async { Ok("x".repeat(10)) }).await;
        Ok(u64::from(big.is_err()))
    });

    let (_, failure) = failed_step(server.answer(last(1)).await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("PAYLOAD_TOO_LARGE", true));
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_read_back_is_not_recorded() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let number: f64 = ctx.run("nan", async { Ok(f64::NAN) }).await?;
        Ok(number as u64)
    });

    assert_eq!(failed_step(server.answer(last(1)).await).1.code, "INVALID_OUTPUT");
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn the_idempotency_key_is_the_same_for_every_attempt() {
    let (keys, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let keys = keys.clone();
        async move {
            keys.send(ctx.idempotency_key("charge"))?;
            let charge = ctx.step("charge").run(|step| {
                keys.send(step.idempotency_key()).unwrap();
                async move { if step.attempt() == 1 { anyhow::bail!("once") } else { Ok(1) } }
            });
            charge.await
        }
    });

    failed_step(server.answer(retry_in(0)).await);
    recorded(server.commit().await);
    server.commit_end().await;

    for _ in 0..3 {
        assert_eq!(seen.recv().await.unwrap(), "wf:r1:step:charge");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_makes_no_sense_is_told_before_the_step_runs() {
    let server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let nan = crate::RetryPolicy::default().backoff_coefficient(f64::NAN);
        let error = ctx.step("nan").retry_policy(nan).run::<u64, _, _>(|_| async { panic!("ran") }).await;
        assert!(error.unwrap_err().to_string().contains("backoff_coefficient is NaN"));
        ctx.step("none").retries(0).run(|_| async { panic!("ran") }).await
    });

    let failure = run_failure(server.commit_end().await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("INVALID_POLICY", true));
    assert!(failure.message.contains("maximum_attempts is 0"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_result_is_encoded_fails_the_step_and_not_the_run() {
    #[derive(Debug, serde::Deserialize)]
    struct Fragile;
    impl serde::Serialize for Fragile {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("not like this")
        }
    }
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let error = ctx.run::<Fragile, _>("fragile", async { Ok(Fragile) }).await.unwrap_err();
        assert_eq!(error.downcast_ref::<StepError>().unwrap().code, "PANIC");
        Ok(1)
    });

    assert_eq!(failed_step(server.answer(last(1)).await).1.message, "not like this");
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn code_that_runs_elsewhere_hears_that_nobody_waits_for_its_step() {
    let (sent, heard) = tokio::sync::oneshot::channel();
    let sent = std::sync::Arc::new(parking_lot::Mutex::new(Some(sent)));
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let sent = sent.clone();
        async move {
            let slow = ctx.step("slow").run(move |step| {
                let (token, sent) = (step.cancellation(), sent.lock().take());
                tokio::spawn(async move {
                    token.cancelled().await;
                    if let Some(sent) = sent {
                        sent.send(()).expect("the test listens");
                    }
                });
                std::future::pending::<anyhow::Result<u64>>()
            });
            let fast = ctx.run("fast", async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(1)
            });
            crate::select! {
                slow = slow => slow,
                fast = fast => fast,
            }
        }
    });

    assert_eq!(recorded(server.commit().await).0, "fast");
    assert_eq!(run_output(server.commit_end().await), 1);
    heard.await.expect("the token was cancelled");
}
