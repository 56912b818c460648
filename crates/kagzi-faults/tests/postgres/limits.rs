//! A limit on a queue holds over two servers, one of which is killed, at every commit that anybody sees.

use futures_util::future::join_all;
use kagzi_faults::{Pace, QUEUE, Script, stage};
use kagzi_proto::v1;
use kagzi_store_postgres::fixture;
use tokio_util::sync::CancellationToken;

use crate::{addresses, count, turn};

const LIMIT: u32 = 4;
const RUNS: usize = 120;

/// The most runs that were leased at once, looked at again and again.
async fn most_leased(url: String, over: CancellationToken) -> (i64, usize) {
    let (mut most, mut looks) = (0, 0);
    while !over.is_cancelled() {
        let leased = "SELECT count(*) FROM kagzi.runs WHERE lease_worker IS NOT NULL";
        if let Some(leased) = count(&url, leased).await {
            most = most.max(leased);
            looks += 1;
        }
    }
    (most, looks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_over_two_servers_although_one_is_killed() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Steady, url.clone());
    let two = one.sibling().await;
    let limit =
        v1::LimitQueueRequest { task_queue: QUEUE.into(), max_concurrent: Some(LIMIT), ..Default::default() };
    one.admin().limit_queue(limit).await.unwrap();
    let over = CancellationToken::new();
    let watching = tokio::spawn(most_leased(url, over.clone()));
    let lists = [addresses(&one, &two), addresses(&two, &one)];
    let _workers = [
        one.worker_at(&lists[0], &["--max-concurrent", "20"]).await,
        one.worker_at(&lists[1], &["--max-concurrent", "20"]).await,
    ];

    let mut runs = Vec::new();
    for n in 0..RUNS {
        let server = if n % 2 == 0 { &one } else { &two };
        runs.push(server.start(&Script::steps(&["a", "b"])).await);
        if n == RUNS / 2 {
            two.kill_server().await;
            two.restart_server().await;
        }
    }
    join_all(runs.iter().map(|run| one.completed(run))).await;

    over.cancel();
    let (most, looks) = watching.await.unwrap();
    assert!((1..=i64::from(LIMIT)).contains(&most), "{most} runs were leased at once");
    assert!(looks > 20, "looked {looks} times");
    drop(two);
    one.close().await;
}
