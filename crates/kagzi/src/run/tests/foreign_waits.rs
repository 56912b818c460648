//! What is no operation: timers, channels and requests of the function's own.

use std::time::Duration;

use tokio::time::Instant;

use super::scripted_server::{ScriptedServer, assign, blocked_message, completed, run_output};

#[tokio::test(start_paused = true)]
async fn a_replay_that_waits_for_something_else_is_blocked_after_a_minute_and_says_what_was_next() {
    let began = Instant::now();
    let server =
        ScriptedServer::execute(assign("0", vec![completed("charge", 0, "7")]), |ctx, _| async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            ctx.run("charge", async { panic!("ran a recorded step") }).await
        });

    let message = blocked_message(server.commit_end().await);

    assert!(message.starts_with("recorded charge next, but for 60 s the workflow has waited"), "{message}");
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_waits_for_less_than_a_minute_goes_on() {
    let server =
        ScriptedServer::execute(assign("0", vec![completed("charge", 0, "7")]), |ctx, _| async move {
            tokio::time::sleep(Duration::from_secs(59)).await;
            ctx.run("charge", async { panic!("ran a recorded step") }).await
        });

    assert_eq!(run_output(server.commit_end().await), 7);
}
