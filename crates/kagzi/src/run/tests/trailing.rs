use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kagzi_proto::v1::report;

use super::scripted_server::{ScriptedServer, assign, recorded, run_failure, run_output};
use crate::limits;
use crate::run::uplink::Verdict;

#[tokio::test(start_paused = true)]
async fn the_last_result_and_the_end_are_one_report() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let a: u64 = ctx.run("a", async { Ok(1) }).await?;
        ctx.run("b", async move { Ok(a + 1) }).await
    });

    assert_eq!(recorded(server.commit().await).0, "a");
    let end = server.next_report().await;
    let report::Body::RunCompleted(completed) = &end.body else { panic!("not completed: {:?}", end.body) };

    let steps: Vec<_> = completed.steps.iter().map(|step| step.step.clone().unwrap().path).collect();
    assert_eq!(steps, ["b"]);
    assert_eq!(run_output(end.body), 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_step_begins_only_after_the_commit_of_the_results_before_it() {
    let began = Arc::new(AtomicBool::new(false));
    let begin = began.clone();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let begin = begin.clone();
        async move {
            let a: u64 = ctx.run("a", async { Ok(1) }).await?;
            ctx.run("b", async move {
                begin.store(true, Ordering::SeqCst);
                Ok(a)
            })
            .await
        }
    });

    let first = server.next_report().await;
    tokio::task::yield_now().await;
    assert!(!began.load(Ordering::SeqCst), "a step began before what it builds on was durable");
    first.verdict.unwrap().send(Verdict::Committed).unwrap();

    assert_eq!(recorded(server.commit().await).0, "b");
    assert!(began.load(Ordering::SeqCst));
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_sleep_is_scheduled_after_the_results_before_it() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run("a", async { Ok(1_u64) }).await?;
        ctx.sleep(std::time::Duration::from_secs(1)).await?;
        Ok(0)
    });

    let first = server.next_report().await;
    assert_eq!(recorded(first.body).0, "a");
    tokio::task::yield_now().await;
    assert!(server.is_silent());
    first.verdict.unwrap().send(Verdict::Committed).unwrap();

    assert!(matches!(server.commit().await, report::Body::SleepScheduled(_)));
}

#[tokio::test(start_paused = true)]
async fn a_function_that_waits_for_something_else_does_not_keep_its_results_back() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let value: u64 = ctx.run("a", async { Ok(1) }).await?;
        tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
        Ok(value)
    });

    assert_eq!(recorded(server.commit().await).0, "a");
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_recorded_before_the_failure_that_follows_it() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run("a", async { Ok(1_u64) }).await?;
        anyhow::bail!("then this")
    });

    assert_eq!(recorded(server.commit().await).0, "a");
    assert_eq!(run_failure(server.commit_end().await).message, "then this");
}

#[tokio::test(start_paused = true)]
async fn results_that_are_large_together_are_sent_before_the_end() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let text: String = ctx.run("a", async { Ok("x".repeat(limits::TRAILING_BYTES_MAX)) }).await?;
        Ok(text.len() as u64)
    });

    let first = server.next_report().await;
    assert_eq!(recorded(first.body).0, "a");
    tokio::task::yield_now().await;
    assert!(server.is_silent(), "the end overtook a result");
    first.verdict.unwrap().send(Verdict::Committed).unwrap();

    assert_eq!(run_output(server.commit_end().await), limits::TRAILING_BYTES_MAX as u64);
}

#[tokio::test(start_paused = true)]
async fn a_refused_result_ends_the_run_and_no_further_step_begins() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run("a", async { Ok(1_u64) }).await?;
        ctx.run("b", async { panic!("began on a result that is not recorded") }).await
    });

    let refused = Verdict::Refused { code: "INVALID".into(), message: "no".into() };
    assert_eq!(recorded(server.answer(refused).await).0, "a");

    let failure = run_failure(server.commit_end().await);
    assert_eq!((failure.code.as_str(), failure.non_retryable), ("INVALID", true));
}
