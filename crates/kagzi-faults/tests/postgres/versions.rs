//! Two versions on one database: a server that does not know what its neighbour writes leaves that run alone,
//! and nothing else.

use kagzi_faults::{Move, Pace, Script, Stage, eventually, stage};
use kagzi_model::Kind;
use kagzi_proto::v1::{GetServerInfoRequest, WorkflowStatus};
use kagzi_store_postgres::fixture;

use crate::turn;

/// Neighbours of the victim, started at this server and waited for here.
async fn neighbours_complete(stage: &Stage) {
    for _ in 0..3 {
        let run = stage.start(&Script::steps(&["reserve", "charge"])).await;
        stage.completed(&run).await;
    }
}

/// What `kagzi doctor` says of rows that were set aside.
async fn set_aside(stage: &Stage) -> Vec<(String, String)> {
    let info = stage.admin().get_server_info(GetServerInfoRequest {}).await.unwrap().into_inner();
    info.set_aside.into_iter().map(|row| (row.name, row.why)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_only_the_newer_server_knows_sets_that_run_aside_at_the_older_one_and_no_other() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let newer = stage!(Pace::Steady, url.clone());
    let older = newer.older_sibling(Kind::SleepScheduled as u8).await;
    let workers = [newer.worker(&[]).await, older.worker(&[]).await];
    neighbours_complete(&newer).await;
    neighbours_complete(&older).await;

    // The newer server writes what the older one does not know, and is gone when the run wakes up.
    let [at_newer, at_older] = workers;
    at_older.kill().await;
    let victim = newer.start(&Script::default().then(Move::Sleep { ms: 3_000 }).step("charge")).await;
    newer.until(&victim, WorkflowStatus::Sleeping).await;
    newer.kill_server().await;
    at_newer.kill().await;
    let at_older = older.worker(&[]).await;

    let named = |rows: &[(String, String)]| {
        rows.len() == 1 && rows[0].0.contains(&victim) && rows[0].1.contains("kind 6")
    };
    for round in 0..2 {
        eventually("the older server names the run", async || {
            neighbours_complete(&older).await;
            named(&set_aside(&older).await).then_some(())
        })
        .await;
        assert_eq!(older.run(&victim).await.status(), WorkflowStatus::Sleeping, "it is left as it is");
        if round == 0 {
            older.kill_server().await;
            older.restart_server().await;
        }
    }

    // Whoever understands it goes on with it.
    at_older.kill().await;
    newer.restart_server().await;
    let _worker = newer.worker(&[]).await;
    newer.completed(&victim).await;
    neighbours_complete(&newer).await;
    drop(older);
    newer.close().await;
}
