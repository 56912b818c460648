use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use futures_util::future::try_join_all;
use kagzi_proto::v1::{self, report};
use tokio::sync::oneshot;

use super::scripted_server::{
    ScriptedServer, assert_parked, assign, failed_step, recorded, retry_in, run_output,
};
use crate::run::uplink::Verdict;

#[tokio::test(start_paused = true)]
async fn a_run_with_one_blocked_step_parks_only_after_the_other_has_ended() {
    let (finish, finished) = oneshot::channel::<()>();
    let finished = Arc::new(parking_lot::Mutex::new(Some(finished)));
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let finished = finished.lock().take().unwrap();
        async move {
            let slow = ctx.run("slow", async move { Ok(finished.await.map(|()| 1_u64)?) });
            let broken = ctx.run::<u64, _>("broken", async { bail!("down") });
            let (slow, broken) = tokio::join!(slow, broken);
            Ok(slow? + broken?)
        }
    });

    // A plain future cannot be started again here, so `broken` stays blocked however long `slow` takes.
    failed_step(server.answer(retry_in(1)).await);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    finish.send(()).unwrap();

    assert_eq!(recorded(server.commit().await).0, "slow");
    assert_parked(server.commit_end().await);
}

#[tokio::test(start_paused = true)]
async fn a_closure_is_retried_in_place_while_other_steps_run() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let slow = ctx.run("slow", async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(1_u64)
        });
        let flaky = ctx.step("flaky").run(|step| async move {
            if step.attempt() == 1 { bail!("once") } else { Ok(u64::from(step.attempt())) }
        });
        let (slow, flaky) = tokio::join!(slow, flaky);
        Ok(slow? + flaky?)
    });

    failed_step(server.answer(retry_in(5)).await);

    assert_eq!(recorded(server.commit().await), ("flaky".into(), 1, 2, "2".into()));
    assert_eq!(recorded(server.commit().await), ("slow".into(), 0, 1, "1".into()));
    assert_eq!(run_output(server.commit_end().await), 3);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_in_place_while_other_steps_run() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let slow = ctx.run("slow", async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(1_u64)
        });
        let (slow, slept) = tokio::join!(slow, ctx.sleep(Duration::from_secs(5)));
        slept?;
        slow
    });

    let remaining = Duration::from_secs(5);
    let scheduled = server.answer(Verdict::Sleeping { remaining }).await;
    assert!(matches!(scheduled, report::Body::SleepScheduled(_)), "{scheduled:?}");
    let over = server.commit().await;
    assert!(matches!(over, report::Body::SleepOver(_)), "{over:?}");

    assert_eq!(recorded(server.commit().await).0, "slow");
    assert_eq!(run_output(server.commit_end().await), 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_the_allowed_number_of_steps_runs_at_once() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most_seen = most.clone();
    let limited = v1::Assign { step_concurrency_max: 3, ..assign("0", vec![]) };
    let mut server = ScriptedServer::execute(limited, move |ctx, _| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            let steps = (0..10_u64).map(|i| {
                let (running, most) = (running.clone(), most.clone());
                ctx.run("part", async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(i)
                })
            });
            Ok(try_join_all(steps).await?.into_iter().sum())
        }
    });

    let mut paths = Vec::new();
    for _ in 0..10 {
        paths.push(recorded(server.commit().await).0);
    }

    assert_eq!(run_output(server.commit_end().await), 45);
    assert_eq!(most_seen.load(Ordering::SeqCst), 3);
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn paths_follow_the_order_of_calls_not_of_polls() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let first = ctx.run("part", async { Ok(1_u64) });
        let second = ctx.run("part", async { Ok(2_u64) });
        let second = second.await?;
        Ok(first.await? * 10 + second)
    });

    assert_eq!(recorded(server.commit().await), ("part#2".into(), 1, 1, "2".into()));
    assert_eq!(recorded(server.commit().await), ("part".into(), 0, 1, "1".into()));
    assert_eq!(run_output(server.commit_end().await), 12);
}

#[tokio::test(start_paused = true)]
async fn a_step_in_a_task_of_its_own_can_park_the_run() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let step = ctx.run::<u64, _>("spawned", async { bail!("down") });
        tokio::spawn(step).await?
    });

    failed_step(server.answer(retry_in(60)).await);

    let end = server.commit().await;
    assert_parked(end);
}
