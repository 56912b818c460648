//! Code that was changed where steps race: what is said, and how soon.

use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus};
use tokio::time::Instant;

use super::scripted_server::{
    ScriptedServer, assign, blocked_message, completed, entry, recorded, run_output,
};
use crate::run::context::WorkflowContext;

/// `select!(fast, slow)`, which `fast` won; then `ship`.
fn journal() -> Vec<v1::JournalEntry> {
    vec![
        v1::JournalEntry { order: 1, ..completed("fast", 0, "7") },
        entry("slow", 1, StepStatus::Running),
        v1::JournalEntry { order: 2, ..completed("ship", 2, "9") },
    ]
}

fn recorded_step(
    ctx: &WorkflowContext,
    name: &str,
) -> impl Future<Output = anyhow::Result<u64>> + Send + use<> {
    ctx.run(name, async { panic!("ran a step of changed code") })
}

/// Executes the changed code on the record, and answers with why it was blocked and after how long.
async fn blocked<F, Fut>(function: F) -> (String, Duration)
where
    F: Fn(WorkflowContext, u64) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<u64>> + Send + 'static,
{
    let began = Instant::now();
    let server = ScriptedServer::execute(assign("0", journal()), function);
    let message = blocked_message(server.commit_end().await);
    (message, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_renamed_branch_is_named_at_once() {
    let (message, after) = blocked(|ctx, _| async move {
        crate::select! {
            quick = recorded_step(&ctx, "quick") => quick?,
            slow = recorded_step(&ctx, "slow") => slow?,
        };
        recorded_step(&ctx, "ship").await
    })
    .await;

    assert_eq!((message.as_str(), after), ("recorded fast at position 0, got quick", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_removed_branch_is_named_at_once() {
    let (message, after) = blocked(|ctx, _| async move {
        recorded_step(&ctx, "slow").await?;
        recorded_step(&ctx, "ship").await
    })
    .await;

    assert_eq!((message.as_str(), after), ("recorded fast at position 0, got slow", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_gone_from_its_end_is_named_at_once() {
    let (message, after) = blocked(|ctx, _| async move {
        crate::select! {
            fast = recorded_step(&ctx, "fast") => fast,
            slow = recorded_step(&ctx, "slow") => slow,
        }
    })
    .await;

    let expected = "recorded ship, but the workflow ended without it";
    assert_eq!((message.as_str(), after), (expected, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_removed_race_beside_a_timer_of_its_own_is_blocked_after_a_minute() {
    let (message, after) = blocked(|ctx, _| async move {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        recorded_step(&ctx, "ship").await
    })
    .await;

    assert!(message.starts_with("recorded fast next, but for 60 s the workflow has waited"), "{message}");
    assert_eq!(after, Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn swapped_branches_still_have_the_same_winner() {
    let server = ScriptedServer::execute(assign("0", journal()), |ctx, _| async move {
        let won = crate::select! {
            slow = recorded_step(&ctx, "slow") => slow?,
            fast = recorded_step(&ctx, "fast") => fast?,
        };
        Ok(won + recorded_step(&ctx, "ship").await?)
    });

    assert_eq!(run_output(server.commit_end().await), 16);
}

#[tokio::test(start_paused = true)]
async fn an_inserted_branch_loses_what_was_decided_and_begins_nothing() {
    let server = ScriptedServer::execute(assign("0", journal()), |ctx, _| async move {
        let won = crate::select! {
            new = recorded_step(&ctx, "new") => new?,
            fast = recorded_step(&ctx, "fast") => fast?,
            slow = recorded_step(&ctx, "slow") => slow?,
        };
        Ok(won + recorded_step(&ctx, "ship").await?)
    });

    assert_eq!(run_output(server.commit_end().await), 16);
}

#[tokio::test(start_paused = true)]
async fn a_step_added_behind_the_record_is_executed() {
    let mut server = ScriptedServer::execute(assign("0", journal()), |ctx, _| async move {
        let won = crate::select! {
            fast = recorded_step(&ctx, "fast") => fast?,
            slow = recorded_step(&ctx, "slow") => slow?,
        };
        let shipped = recorded_step(&ctx, "ship").await?;
        ctx.run("mail", async move { Ok(won + shipped) }).await
    });

    assert_eq!(recorded(server.commit().await).0, "mail");
    assert_eq!(run_output(server.commit_end().await), 16);
}
