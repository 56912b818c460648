//! A broken connection says more than silence: a killed worker is noticed at once, one that comes back loses
//! nothing.

use std::time::{Duration, Instant};

use kagzi_faults::{Pace, Proxy, Script, eventually, stage};
use kagzi_proto::v1::WorkerStatus;

#[tokio::test]
async fn the_runs_of_a_killed_worker_execute_elsewhere_within_three_seconds() {
    // Silence alone would take twenty seconds to be noticed.
    let stage = stage!(Pace::Calm);
    let victim = stage.worker(&[]).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(stage.start(&Script::steps(&["reserve"]).gated("charge")).await);
    }
    for run in &runs {
        stage.began(run, "charge", 1).await;
    }
    let heir = stage.worker(&[]).await;

    let killed_at = Instant::now();
    victim.kill().await;
    for run in &runs {
        let charges = stage.began(run, "charge", 2).await;
        assert_eq!(charges[1].pid, heir.pid());
    }
    let took = killed_at.elapsed();
    println!("5 runs of a killed worker executed elsewhere after {took:?}");

    assert!(took < Duration::from_secs(3), "{took:?}");
    stage.log.open_gate("charge");
    for run in &runs {
        let ended = stage.completed(run).await;
        assert_eq!(ended.attempts, 0, "a lost worker is not the run's failure");
        assert_eq!(stage.log.began(run, "reserve").len(), 1, "a recorded step is not run again");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_worker_that_is_cut_off_for_a_second_and_reconnects_keeps_its_runs() {
    let stage = stage!(Pace::Calm);
    let proxy = Proxy::to(stage.address).await;
    let worker = stage.worker_at(proxy.address, &[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;
    let heir = stage.worker(&[]).await;

    proxy.refuse(true);
    proxy.cut();
    // Not to wait for anything: this is how long the network is away.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.refuse(false);
    let beat_before = heartbeat(&stage, worker.pid()).await;
    eventually("it is heard of again", async || {
        (heartbeat(&stage, worker.pid()).await > beat_before).then_some(())
    })
    .await;
    // Longer than the grace has passed since the cut once the server could have taken the run.
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    let charges = stage.log.began(&run, "charge");
    assert_eq!(charges.iter().map(|charge| charge.pid).collect::<Vec<_>>(), [worker.pid()]);
    assert!(!stage.kinds(&run).await.contains(&"lease_lost".to_owned()));
    assert_eq!(stage.workers_of(worker.pid()).await.len(), 1, "it kept its id");
    drop(heir);
    stage.close().await;
}

async fn heartbeat(stage: &kagzi_faults::Stage, pid: u32) -> Option<(i64, i32)> {
    let rows = stage.workers_of(pid).await;
    let beat = rows.first()?.last_heartbeat_at.as_ref()?;
    assert_eq!(rows[0].status(), WorkerStatus::Online);
    Some((beat.seconds, beat.nanos))
}

#[tokio::test]
async fn a_server_that_restarts_starts_no_clock_for_the_workers_it_leaves() {
    let stage = stage!(Pace::Calm);
    let worker = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;
    worker.stop();

    let mut server = stage.take_server();
    server.terminate();
    assert!(server.ended().await.success());
    stage.restart_server().await;
    // Longer than the grace: the worker, which is stopped, cannot come back, and only silence counts against
    // it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let kinds = stage.kinds(&run).await;
    worker.go_on();
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert!(!kinds.contains(&"lease_lost".to_owned()), "{kinds:?}");
    assert_eq!(stage.log.began(&run, "charge").len(), 1);
    stage.close().await;
}
