use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use futures_util::future::try_join_all;
use kagzi_proto::v1::{self, report};
use tokio::sync::oneshot;

use super::scripted_server::{
    ScriptedServer, assert_parked, assign, failed_step, parked_for, recorded, retry_in, run_failure,
    run_output,
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
async fn a_step_in_a_task_of_its_own_is_an_error_that_says_what_to_write() {
    let server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let called_here = ctx.run::<u64, _>("called", async { panic!("ran outside the workflow") });
        let error = tokio::spawn(called_here).await?.unwrap_err();
        assert!(error.to_string().contains("ctx.spawn"), "{error}");
        let other = ctx.clone();
        let called_there = tokio::spawn(async move { other.sleep(Duration::from_secs(1)).await });
        called_there.await??;
        Ok(0)
    });

    let failure = run_failure(server.commit_end().await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("OUTSIDE_WORKFLOW", true));
    assert!(
        failure.message.contains("'sleep' was used outside its workflow function"),
        "{}",
        failure.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_inside_a_step_is_an_error_that_says_why() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let inner = ctx.clone();
        ctx.run("outer", async move { inner.run::<u64, _>("inner", async { Ok(1) }).await }).await
    });

    let last = Verdict::Final { attempts: 1, finality: v1::Finality::NonRetryable.into() };
    let (_, failure) = failed_step(server.answer(last).await);

    assert_eq!((failure.code.as_str(), failure.non_retryable), ("NESTED_STEP", true));
    assert!(failure.message.contains("Steps do not nest"), "{}", failure.message);
    server.commit_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_context_that_outlives_its_run_executes_nothing() {
    let (escape, escaped) = oneshot::channel();
    let escape = Arc::new(parking_lot::Mutex::new(Some(escape)));
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let escape = escape.lock().take().unwrap();
        async move {
            drop(escape.send(ctx.clone()));
            Ok(1)
        }
    });
    server.commit().await;
    server.task.await.unwrap();

    let late = escaped.await.unwrap().run::<u64, _>("late", async { panic!("ran after the run was over") });

    assert!(late.await.unwrap_err().to_string().contains("after the run was over"));
}

#[tokio::test(start_paused = true)]
async fn members_that_nobody_looks_at_hold_no_permit() {
    let limited = v1::Assign { step_concurrency_max: 10, ..assign("0", vec![]) };
    let mut server = ScriptedServer::execute(limited, |ctx, _| async move {
        let members = (0..12_u64).map(|i| {
            ctx.run("member", async move {
                tokio::time::sleep(Duration::from_secs(1 + i)).await;
                Ok(i)
            })
        });
        let mut members: futures_util::stream::FuturesUnordered<_> = members.collect();
        let mut sum = 0;
        while let Some(member) = futures_util::StreamExt::next(&mut members).await {
            sum += member?;
            let body = async {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(0_u64)
            };
            sum += ctx.run("body", body).await?;
        }
        Ok(sum)
    });

    let mut bodies = 0;
    while bodies < 12 {
        let (path, ..) = recorded(server.commit().await);
        bodies += u32::from(path.starts_with("body"));
    }

    assert_eq!(run_output(server.commit_end().await), 66);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_names_what_it_waits_for_and_not_what_it_dropped() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let flaky = ctx.step("flaky").run(|_| async { bail!("down") });
        crate::select! {
            failed = flaky => failed,
            late = ctx.run("fast", async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(1)
            }) => {
                late?;
                ctx.sleep(Duration::from_secs(60)).await?;
                Ok(1)
            }
        }
    });

    failed_step(server.answer(retry_in(3600)).await);
    recorded(server.commit().await);
    server.answer(Verdict::Sleeping { remaining: Duration::from_secs(60) }).await;

    assert_eq!(parked_for(server.commit_end().await), ["sleep"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_while_the_server_is_asked() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let last = || crate::step_error::NonRetryableError::new("no");
        let failed = ctx.run::<u64, _>("failed", async move { Err(last().into()) });
        let slow = ctx.run("slow", async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(1_u64)
        });
        crate::select! {
            slow = slow => slow,
            failed = failed => {
                assert!(failed.is_err());
                ctx.run("handled", async { Ok(2) }).await
            }
        }
    });

    let asked = server.next_report().await;
    assert!(matches!(asked.body, report::Body::StepFailed(_)), "{:?}", asked.body);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(server.is_silent(), "a result overtook the answer");
    let last = Verdict::Final { attempts: 1, finality: v1::Finality::NonRetryable.into() };
    asked.verdict.unwrap().send(last).unwrap();

    assert_eq!(recorded(server.commit().await).0, "handled");
    assert_eq!(run_output(server.commit_end().await), 2);
}

#[tokio::test(start_paused = true)]
async fn a_spawned_part_is_executed_beside_the_rest_and_ends_with_its_handle() {
    let alive = Arc::new(());
    let inside = alive.clone();
    let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| {
        let inside = inside.clone();
        async move {
            let (one, two) = (ctx.scope("one"), ctx.scope("two"));
            let part = ctx.spawn(async move { one.run("part", async { Ok(1_u64) }).await });
            let dropped = ctx.spawn(async move {
                let _inside = inside;
                two.run("hang", std::future::pending::<anyhow::Result<u64>>()).await
            });
            let beside: u64 = ctx.run("beside", async { Ok(2) }).await?;
            drop(dropped);
            Ok(ctx.run("after", async { Ok(beside) }).await? + part.await?)
        }
    });

    let mut paths = Vec::new();
    for _ in 0..3 {
        paths.push(recorded(server.commit().await).0);
    }
    assert_eq!(Arc::strong_count(&alive), 2, "the dropped part is still alive");
    assert_eq!(run_output(server.commit_end().await), 3);
    paths.sort();
    assert_eq!(paths, ["after", "beside", "one/part"]);
}
