//! `/readyz` measures progress: a process that lives on a store that does not move is not ready.

use kagzi_faults::{Pace, Script, eventually, stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_store_stalls_is_not_ready_until_it_moves_again() {
    let stage = stage!(Pace::Calm);
    assert_eq!(stage.ready().await, (200, "ready\n".into()));

    // Somebody else holds the write lock, as a backup tool or a hanging disk would.
    let other = rusqlite::Connection::open(stage.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let why = eventually("the server notices", async || {
        let (status, why) = stage.ready().await;
        (status == 503).then_some(why)
    })
    .await;
    assert!(why.starts_with("not ready: "), "{why}");
    assert_eq!(stage.metric("kagzi_ready").await, 0.0);

    other.execute_batch("ROLLBACK").unwrap();
    eventually("the server is ready again", async || (stage.ready().await.0 == 200).then_some(())).await;
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&run).await;
    stage.close().await;
}
