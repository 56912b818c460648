//! The database is away for longer than a lease.

use std::time::{Duration, Instant};

use kagzi_faults::{Evidence, Pace, Phase, Script, eventually, stage};
use kagzi_proto::v1::{self, WorkflowStatus};
use kagzi_store_postgres::fixture;

use crate::{count, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn living_workers_keep_their_runs_when_the_database_was_away_for_longer_than_a_lease() {
    let _turn = turn().await;
    let mut database = fixture::Server::private();
    let one = stage!(Pace::Steady, database.url());
    let two = one.sibling().await;
    let _holder = one.worker(&[]).await;
    let held = one.start(&Script::default().gated("held").step("after")).await;
    let ended = one.start(&Script::default().gated("ended")).await;
    one.began(&held, "held", 1).await;
    one.began(&ended, "ended", 1).await;
    // On the other server: it would take them over if it could.
    let _idle = two.worker(&[]).await;

    let away = Instant::now();
    database.stop();
    eventually("the database is away", async || match count(&database.url(), "SELECT 1::bigint").await {
        Some(_) => None,
        None => Some(()),
    })
    .await;
    one.log.open_gate("ended");
    eventually("a step ends", async || one.log.of(&ended, "ended", Phase::Ended).pop()).await;
    let read = v1::GetWorkflowRunRequest { run_id: held.clone(), ..Default::default() };
    let refused = one.workflows().get_workflow_run(read).await.expect_err("nothing can be read");
    let lease = one.pace.lease();
    eventually("a lease and more goes by", async || (away.elapsed() > lease * 3 / 2).then_some(())).await;
    database.start();
    one.completed(&ended).await;
    // Longer than everybody needs to be declared lost.
    let back = Instant::now();
    eventually("a lease goes by", async || (back.elapsed() > lease + Duration::from_secs(2)).then_some(()))
        .await;
    let seen = two.run(&held).await;
    one.log.open_gate("held");
    let done = one.completed(&held).await;

    assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused}");
    assert!(refused.metadata().get("grpc-retry-pushback-ms").is_some(), "{refused:?}");
    assert_eq!((seen.status(), seen.lease_epoch), (WorkflowStatus::Running, 1));
    assert_eq!((done.lease_epoch, done.dispatch_count), (1, 1));
    two.kill_server().await;
    assert_eq!(one.close().await, Evidence { runs: 2, completed: 2, results: 3, executions: 3 });
}
