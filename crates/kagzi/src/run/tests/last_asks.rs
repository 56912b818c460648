//! A wait that nothing can overtake asks and parks in one report.

use std::time::Duration;

use kagzi_proto::v1::{self, WaitOutcome, report};

use super::scripted_server::{ScriptedServer, assign, recorded, run_output};
use crate::run::uplink::Verdict;

fn waited(outcome: WaitOutcome, signal: &str) -> Verdict {
    let signal = Some(v1::Payload { data: signal.to_owned().into(), content_type: String::new() });
    Verdict::Waited(Box::new(v1::Waited { outcome: outcome.into(), signal, ..Default::default() }))
}

/// What the run is parked with if nothing has come; none where the wait only asks.
fn parks_with(body: report::Body) -> Option<Vec<String>> {
    let report::Body::SignalAwaited(awaited) = body else { panic!("nothing was awaited: {body:?}") };
    awaited.park.map(|parked| parked.waits)
}

#[tokio::test(start_paused = true)]
async fn a_wait_alone_parks_with_its_question_and_says_nothing_more() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        ctx.signal::<u64>("go").await?;
        panic!("nothing has come");
    });

    let parked = parks_with(server.answer(waited(WaitOutcome::Waiting, "")).await);

    assert_eq!(parked, Some(vec!["go".to_owned()]));
    (&mut server.task).await.expect("the task of a run does not die");
    assert!(server.is_silent(), "everything was said");
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_was_there_lets_the_function_go_on() {
    let mut server =
        ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move { ctx.signal("go").await });

    let parked = parks_with(server.answer(waited(WaitOutcome::Taken, "7")).await);

    assert_eq!(parked, Some(vec!["go".to_owned()]));
    assert_eq!(run_output(server.commit_end().await), 7);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beside_a_step_that_runs_parks_nothing() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let step = ctx.run("charge", async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(2)
        });
        let (charged, said) = tokio::join!(step, ctx.signal::<u64>("go"));
        Ok(charged? + said?)
    });

    assert_eq!(parks_with(server.answer(waited(WaitOutcome::Waiting, "")).await), None);
    assert_eq!(recorded(server.commit().await).0, "charge");
}

#[tokio::test(start_paused = true)]
async fn the_last_of_several_waits_names_all_of_them() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let (yes, no) = tokio::join!(ctx.signal::<u64>("yes"), ctx.signal::<u64>("no"));
        Ok(yes? + no?)
    });

    assert_eq!(parks_with(server.answer(waited(WaitOutcome::Waiting, "")).await), None);
    let parked = parks_with(server.answer(waited(WaitOutcome::Waiting, "")).await);

    assert_eq!(parked, Some(vec!["yes".to_owned(), "no".to_owned()]));
    (&mut server.task).await.expect("the task of a run does not die");
    assert!(server.is_silent(), "everything was said");
}

/// A timer of the function's own: what it would do builds on an answer that is still out, which may end the
/// lease.
#[tokio::test(start_paused = true)]
async fn the_function_is_not_polled_while_the_answer_may_end_its_lease() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        tokio::select! {
            said = ctx.signal::<u64>("go") => said,
            () = tokio::time::sleep(Duration::from_secs(1)) => panic!("went on without its lease"),
        }
    });

    let asked = server.next_report().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    asked.verdict.unwrap().send(waited(WaitOutcome::Waiting, "")).unwrap();

    assert_eq!(parks_with(asked.body), Some(vec!["go".to_owned()]));
    (&mut server.task).await.expect("the task of a run does not die");
    assert!(server.is_silent());
}
