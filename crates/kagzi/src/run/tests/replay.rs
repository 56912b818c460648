use kagzi_proto::v1::{self, StepStatus};

use super::scripted_server::{
    ScriptedServer, assign, blocked_message, completed, entry, recorded, run_failure, run_output,
};
use crate::step_error::StepError;

#[tokio::test(start_paused = true)]
async fn a_recorded_step_returns_its_result_without_running() {
    let journal = vec![completed("charge", 0, "7")];
    let server = ScriptedServer::execute(assign("1", journal), |ctx, input| async move {
        let charge: u64 = ctx.run("charge", async { panic!("ran a recorded step") }).await?;
        Ok(charge + input)
    });

    assert_eq!(run_output(server.commit_end().await), 8);
}

#[tokio::test(start_paused = true)]
async fn new_steps_are_recorded_after_the_replayed_ones() {
    let journal = vec![completed("a", 0, "1")];
    let mut server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        let a: u64 = ctx.run("a", async { panic!("ran a recorded step") }).await?;
        let again: u64 = ctx.run("a", async move { Ok(a + 1) }).await?;
        let scoped: u64 = ctx.scope("item-7").run("a", async move { Ok(again + 1) }).await?;
        Ok(scoped)
    });

    assert_eq!(recorded(server.commit().await), ("a#2".into(), 1, 1, "2".into()));
    assert_eq!(recorded(server.commit().await), ("item-7/a".into(), 0, 1, "3".into()));
    assert_eq!(run_output(server.commit_end().await), 3);
}

#[tokio::test(start_paused = true)]
async fn a_step_recorded_as_failed_fails_again_without_running() {
    let failure = v1::Failure { code: "DECLINED".into(), message: "no money".into(), ..Default::default() };
    let charge =
        v1::JournalEntry { failure: Some(Box::new(failure)), ..entry("charge", 0, StepStatus::Failed) };
    let server = ScriptedServer::execute(assign("0", vec![charge]), |ctx, _| async move {
        let error = ctx.run::<u64, _>("charge", async { panic!("ran a failed step") }).await.unwrap_err();
        assert_eq!(error.downcast_ref::<StepError>().unwrap().step, "charge");
        Err(error.context("order"))
    });

    let failure = run_failure(server.commit_end().await);

    assert_eq!(failure.code, "DECLINED");
    assert_eq!(failure.message, "order: step 'charge' failed after 1 attempt(s): no money");
}

#[tokio::test(start_paused = true)]
async fn a_renamed_step_blocks_the_run_and_user_code_never_resumes() {
    let journal = vec![completed("charge", 0, "7")];
    let server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        let result = ctx.run::<u64, _>("bill", async { panic!("ran a step of changed code") }).await;
        panic!("user code saw {result:?}");
    });

    assert_eq!(blocked_message(server.commit_end().await), "recorded charge at position 0, got bill");
}

#[tokio::test(start_paused = true)]
async fn ending_without_a_recorded_step_blocks_the_run() {
    let journal = vec![completed("a", 0, "1"), completed("b", 1, "1")];
    let server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        ctx.run::<u64, _>("a", async { Ok(1) }).await
    });

    let message = blocked_message(server.commit_end().await);

    assert_eq!(message, "recorded b, but the workflow ended without it");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_result_of_another_type_blocks_the_run() {
    let journal = vec![completed("a", 0, r#""text""#)];
    let server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        ctx.run::<u64, _>("a", async { Ok(1) }).await
    });

    let message = blocked_message(server.commit_end().await);

    assert!(message.starts_with("recorded a at position 0, but its result cannot be decoded"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_where_a_step_was_recorded_blocks_the_run() {
    let journal = vec![entry("sleep", 0, StepStatus::Pending)];
    let server = ScriptedServer::execute(assign("0", journal), |ctx, _| async move {
        ctx.sleep(std::time::Duration::from_secs(1)).await?;
        Ok(0)
    });

    assert!(blocked_message(server.commit_end().await).ends_with("got a sleep"));
}

#[tokio::test(start_paused = true)]
async fn a_bad_step_name_fails_with_the_rule() {
    let server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.run::<u64, _>("", async { Ok(1) }).await
    });

    let failure = run_failure(server.commit_end().await);

    assert!(failure.message.contains("must not be empty"), "{}", failure.message);
}
