//! The function drops an operation while the server is asked about its end: only a timer of its own can make
//! it do so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, StepStatus, report};

use parking_lot::Mutex;

use super::scripted_server::{
    ScriptedServer, assign, completed, entry, failed_step, recorded, retry_in, run_output,
};
use crate::run::context::WorkflowContext;
use crate::run::uplink::Verdict;

const LIMIT: Duration = Duration::from_secs(1);

/// Asks for a quote for a second, then takes the one of yesterday.
async fn quote(ctx: WorkflowContext, began: Arc<AtomicBool>) -> anyhow::Result<u64> {
    let quote = ctx.step("quote").run(|_| async { bail!("closed") });
    match tokio::time::timeout(LIMIT, quote).await {
        Ok(quote) => quote,
        Err(_) => {
            ctx.run("fallback", async move {
                began.store(true, Ordering::SeqCst);
                Ok(7)
            })
            .await
        }
    }
}

/// The step that a report closes.
fn closed_step(body: report::Body) -> String {
    let report::Body::StepClosed(closed) = body else { panic!("nothing was closed: {body:?}") };
    closed.step.unwrap().path
}

fn last() -> Verdict {
    Verdict::Final { attempts: 1, finality: v1::Finality::Exhausted.into() }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_the_function_no_longer_waits_for_is_closed_before_anything_new_begins() {
    let began = Arc::new(AtomicBool::new(false));
    let flag = began.clone();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| quote(ctx, flag.clone()));

    let asked = server.next_report().await;
    failed_step(asked.body);
    tokio::time::sleep(2 * LIMIT).await;
    asked.verdict.unwrap().send(last()).unwrap();
    let close = server.next_report().await;

    assert_eq!(closed_step(close.body), "quote");
    tokio::time::sleep(LIMIT).await;
    assert!(!began.load(Ordering::SeqCst), "new code began while the record tells another story");
    close.verdict.unwrap().send(Verdict::Committed).unwrap();
    assert_eq!(recorded(server.commit().await).0, "fallback");
    assert_eq!(run_output(server.commit_end().await), 7);
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_it_takes_the_same_way_again() {
    let journal = vec![
        v1::JournalEntry { order: 0, ..entry("quote", 0, StepStatus::Pending) },
        v1::JournalEntry { order: 1, ..completed("fallback", 1, "7") },
    ];
    let server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        let quote = ctx.step("quote").run(|_| async { panic!("ran a step that was dropped") });
        match tokio::time::timeout(LIMIT, quote).await {
            Ok(quote) => quote,
            Err(_) => ctx.run("fallback", async { panic!("ran a recorded step") }).await,
        }
    });

    assert_eq!(run_output(server.commit_end().await), 7);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_would_have_been_retried_needs_no_close() {
    let mut server =
        ScriptedServer::execute(assign("0", vec![]), |ctx, _| quote(ctx, Arc::new(AtomicBool::new(false))));

    let asked = server.next_report().await;
    tokio::time::sleep(2 * LIMIT).await;
    asked.verdict.unwrap().send(retry_in(60)).unwrap();

    assert_eq!(recorded(server.commit().await).0, "fallback");
    assert_eq!(run_output(server.commit_end().await), 7);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_the_function_no_longer_waits_for_is_closed_too() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let labelled = tokio::time::timeout(LIMIT, ctx.set_label("stage", "sold")).await;
        ctx.run("after", async move { Ok(u64::from(labelled.is_ok())) }).await
    });

    let asked = server.next_report().await;
    assert!(matches!(asked.body, report::Body::LabelSet(_)));
    tokio::time::sleep(2 * LIMIT).await;
    asked.verdict.unwrap().send(Verdict::Committed).unwrap();

    assert_eq!(closed_step(server.commit().await), "label");
    assert_eq!(recorded(server.commit().await).0, "after");
    assert_eq!(run_output(server.commit_end().await), 0);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_sleep_that_the_function_no_longer_waits_for_is_closed_too() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let busy = ctx.run("busy", async {
            tokio::time::sleep(10 * LIMIT).await;
            Ok(1_u64)
        });
        let slept = tokio::time::timeout(2 * LIMIT, ctx.sleep(LIMIT));
        let (busy, slept) = tokio::join!(busy, slept);
        Ok(busy? + u64::from(slept.is_ok()))
    });

    server.answer(Verdict::Sleeping { remaining: LIMIT }).await;
    let asked = server.next_report().await;
    assert!(matches!(asked.body, report::Body::SleepOver(_)));
    tokio::time::sleep(2 * LIMIT).await;
    asked.verdict.unwrap().send(Verdict::Committed).unwrap();

    assert_eq!(closed_step(server.commit().await), "sleep");
    assert_eq!(recorded(server.commit().await).0, "busy");
    assert_eq!(run_output(server.commit_end().await), 1);
}

/// Gives up as soon as it is told to; `again`: the run begins anew then.
fn impatient(
    again: bool,
) -> (
    tokio::sync::oneshot::Sender<()>,
    impl Fn(WorkflowContext, u64) -> BoxFuture<'static, anyhow::Result<u64>>,
) {
    let (enough, told) = tokio::sync::oneshot::channel();
    let told = Mutex::new(Some(told));
    let function = move |ctx: WorkflowContext, _| {
        let told = told.lock().take();
        async move {
            let quote = ctx.step("quote").run(|_| async { bail!("closed") });
            crate::select! {
                _ = told.expect("it is executed once") => {}
                quote = quote => return quote,
            }
            if again {
                return ctx.continue_as_new(&1_u64);
            }
            ctx.run("fallback", async { Ok(7) }).await
        }
        .boxed()
    };
    (enough, function)
}

/// The answer is there, its turn has not come, and something of the function's own makes it drop the step.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_just_before_the_step_is_dropped_is_closed_too() {
    let (enough, function) = impatient(false);
    let mut server = ScriptedServer::execute(assign("0", vec![]), function);

    let asked = server.next_report().await;
    asked.verdict.expect("the run waits").send(last()).expect("the run waits");
    enough.send(()).expect("the function listens");

    assert_eq!(closed_step(server.commit().await), "quote");
    assert_eq!(recorded(server.commit().await).0, "fallback");
    assert_eq!(run_output(server.commit().await), 7);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_begins_anew_gives_back_an_answer_that_it_did_not_hear() {
    let (enough, function) = impatient(true);
    let mut server = ScriptedServer::execute(assign("0", vec![]), function);

    let asked = server.next_report().await;
    asked.verdict.expect("the run waits").send(last()).expect("the run waits");
    enough.send(()).expect("the function listens");

    assert_eq!(closed_step(server.commit().await), "quote");
    assert!(matches!(server.commit().await, report::Body::RunContinued(_)));
}
