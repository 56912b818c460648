//! Both servers do every duty at once: leases that ran out, timers, deadlines, failures and their handlers.

use futures_util::future::join_all;
use kagzi_faults::{Move, Pace, Script, Stage, StepPlan, eventually, flatten_on, stage, start_request};
use kagzi_proto::v1::{StartWorkflowRequest, TimeoutConfig, WorkerStatus, WorkflowStatus};
use kagzi_store_postgres::fixture;

use crate::{count, turn};

const EACH: usize = 40;

/// A run that asks for a handler, should it fail. Nobody registers the handler, so it is there to be counted.
fn handled(script: &Script) -> StartWorkflowRequest {
    StartWorkflowRequest { on_failure_workflow: "handler".into(), ..start_request("script", script) }
}

async fn start_all(stages: [&Stage; 2], request: impl Fn(usize) -> StartWorkflowRequest) -> Vec<String> {
    let starts = (0..EACH).map(|n| stages[n % 2].start_with(request(n)));
    join_all(starts).await.into_iter().map(|started| started.expect("a sound start").run_id).collect()
}

/// Waits for the runs through the server that did not start them.
async fn all_end(stages: [&Stage; 2], runs: &[String], status: WorkflowStatus) {
    let ends = runs.iter().enumerate().map(|(n, run)| stages[(n + 1) % 2].finished(run));
    for ended in join_all(ends).await {
        assert_eq!(ended.status(), status, "run {}: {:?}", ended.run_id, ended.error);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_race_over_leases_timers_deadlines_and_handlers_and_each_happens_once() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Brisk, url.clone());
    let two = one.sibling().await;
    let both = [&one, &two];
    let lost = one.worker(&["--types", "held"]).await;
    let held =
        start_all(both, |n| start_request("held", &Script::default().gated(&format!("held-{n}")))).await;
    for (n, run) in held.iter().enumerate() {
        one.began(run, &format!("held-{n}"), 1).await;
    }

    // Both sweepers see the same silent worker, and both see the same deadlines pass.
    lost.stop();
    let _workers =
        [one.worker(&["--types", "script,held"]).await, two.worker(&["--types", "script,held"]).await];
    let sleeps = |n: usize| {
        let ms = 200 + 20 * u64::try_from(n % 10).unwrap();
        start_request("script", &Script::steps(&["a"]).then(Move::Sleep { ms }).step("b"))
    };
    let sleeping = start_all(both, sleeps).await;
    let hour = Script::default().then(Move::Sleep { ms: 3_600_000 });
    let timeouts = TimeoutConfig { execution_timeout_seconds: Some(1), ..Default::default() };
    let late = |_| StartWorkflowRequest { timeouts: Some(timeouts), ..handled(&hour) };
    let late = start_all(both, late).await;
    let broken = StepPlan { name: "x".into(), failures: 9, attempts_max: Some(1), ..StepPlan::default() };
    let failing = start_all(both, |_| handled(&Script::default().planned(broken.clone()))).await;
    // Taken over, they wait for their gates in another worker.
    for (n, run) in held.iter().enumerate() {
        one.began(run, &format!("held-{n}"), 2).await;
        one.log.open_gate(&format!("held-{n}"));
    }
    all_end(both, &held, WorkflowStatus::Completed).await;
    all_end(both, &sleeping, WorkflowStatus::Completed).await;
    all_end(both, &late, WorkflowStatus::TimedOut).await;
    all_end(both, &failing, WorkflowStatus::Failed).await;
    // What the lost worker says now is refused, and it is told.
    lost.go_on();
    eventually("the lost worker is known again", async || {
        let known = one.workers_of(lost.pid()).await;
        known.iter().any(|worker| worker.status() == WorkerStatus::Online).then_some(())
    })
    .await;

    flatten_on(&url).await;
    let handlers = "SELECT count(*) FROM kagzi.runs WHERE workflow_type = 'handler'";
    let taken = "SELECT count(*) FROM kagzi.flat_events WHERE kind = 10";
    let twice = "SELECT count(*) FROM (SELECT 1 FROM kagzi.flat_events WHERE kind = 10
                  GROUP BY run_id, detail::jsonb -> 'epoch' HAVING count(*) > 1) AS odd";
    assert_eq!(count(&url, handlers).await, Some(2 * EACH as i64), "I9: one handler per failed run");
    assert!(count(&url, taken).await >= Some(EACH as i64), "the lost worker's leases were taken away");
    assert_eq!(count(&url, twice).await, Some(0), "no lease was taken away twice");
    two.kill_server().await;
    let found = one.close().await;
    println!("{found:?}");
    assert_eq!((found.runs, found.completed), (6 * EACH, 2 * EACH));
    assert_eq!(found.results, 3 * EACH);
}
