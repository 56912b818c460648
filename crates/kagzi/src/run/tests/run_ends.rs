use std::sync::Arc;

use kagzi_proto::v1::{self, report};

use super::scripted_server::{ScriptedServer, assign, run_failure, run_output};
use crate::run::uplink::{Outgoing, Verdict};

#[tokio::test(start_paused = true)]
async fn an_undecodable_input_fails_the_run_for_good() {
    let server = ScriptedServer::execute(assign(r#"{"not": "a number"}"#, vec![]), |_, _| async move {
        panic!("ran without an input");
    });

    let failure = run_failure(server.commit_end().await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("INVALID_INPUT", true));
    assert!(failure.message.starts_with("the run's input cannot be decoded"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_are_not_taken_for_null() {
    let mut assigned = assign("", vec![]);
    assigned.input.as_mut().unwrap().data = bytes::Bytes::from_static(b"\xff\xfe");
    let server = ScriptedServer::execute(assigned, |_, _| async move { Ok(1) });

    assert_eq!(run_failure(server.commit_end().await).code, "INVALID_INPUT");
}

#[tokio::test(start_paused = true)]
async fn a_type_without_a_handler_is_given_back() {
    let assigned = v1::Assign { workflow_type: "other".into(), ..assign("0", vec![]) };
    let server = ScriptedServer::execute(assigned, |_, _| async move { Ok(1) });

    let report::Body::RunReleased(released) = server.commit_end().await else { panic!("not released") };

    assert_eq!(released.reason, "no handler for workflow type 'other'");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_function_fails_the_run_and_spares_the_worker() {
    let server = ScriptedServer::execute(assign("0", vec![]), |_, _| async move { panic!("boom") });

    let failure = run_failure(server.commit_end().await);

    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("PANIC", "boom"));
}

#[tokio::test(start_paused = true)]
async fn the_function_knows_its_run() {
    let assigned = v1::Assign { attempts: 2, ..assign("0", vec![]) };
    let server = ScriptedServer::execute(assigned, |ctx, _| async move {
        assert_eq!((ctx.run_id(), ctx.business_id(), ctx.namespace()), ("r1", "order-42", "default"));
        Ok(u64::from(ctx.attempt()))
    });

    assert_eq!(run_output(server.commit_end().await), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_drops_the_function_in_mid_step() {
    let alive = Arc::new(());
    let inside = alive.clone();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let inside = inside.clone();
        async move {
            ctx.run("hang", async move {
                let _inside = inside;
                std::future::pending().await
            })
            .await
        }
    });
    let Outgoing::Started(started) = server.next_message().await else { panic!("no step has started") };
    assert_eq!(started.attempt, 1);
    let while_running = Arc::strong_count(&alive);

    server.task.abort();
    assert!((&mut server.task).await.unwrap_err().is_cancelled());

    assert!(Arc::strong_count(&alive) < while_running, "the step's future is still alive");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_waiter_of_a_report_shows_user_code_nothing() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let result = ctx.run::<u64, _>("a", async { Ok(1) }).await;
        panic!("user code saw {result:?}");
    });

    drop(server.next_report().await);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }

    assert!(server.is_silent(), "user code went on");
    assert!(!server.task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_output_that_is_refused_becomes_a_failure() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |_, _| async move { Ok(1) });

    let refused = Verdict::Refused { code: "PAYLOAD_TOO_LARGE".into(), message: "2 MiB".into() };
    run_output(server.answer(refused).await);
    let failure = run_failure(server.commit_end().await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("PAYLOAD_TOO_LARGE", true));
}
