//! Unordered streams whose items are not looked at while the loop's body awaits something else: what ends
//! meanwhile is handed out in the order of the record, whatever has woken the items in between.

use std::time::Duration;

use anyhow::bail;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi_proto::v1::{self, StepStatus, report};

use super::scripted_server::{ScriptedServer, assign, completed, entry, failed_step, recorded, run_output};
use crate::run::context::WorkflowContext;
use crate::run::uplink::Verdict;

const HOUR: Duration = Duration::from_secs(3600);

fn last() -> Verdict {
    Verdict::Final { attempts: 1, finality: v1::Finality::Exhausted.into() }
}

fn sleeping() -> Verdict {
    Verdict::Sleeping { remaining: HOUR }
}

/// Fails for good, in its turn.
async fn fails(ctx: WorkflowContext, name: &str) -> bool {
    ctx.run::<u64, _>(name, async { bail!("down") }).await.is_err()
}

/// The numbers of the items in the order in which the stream hands them out, as digits.
async fn handed_out(ctx: &WorkflowContext, items: Vec<BoxFuture<'_, u64>>) -> anyhow::Result<u64> {
    let first = ctx.run("first", async { Ok(1_u64) }).map(|first| first.unwrap_or(9)).boxed();
    let mut items: FuturesUnordered<_> = [first].into_iter().chain(items).collect();
    let mut order = 0;
    while let Some(item) = items.next().await {
        order = 10 * order + item;
        if item == 1 {
            ctx.run("body", async { Ok(0_u64) }).await?;
        }
    }
    Ok(order)
}

/// The item 2 waits for two things at once. The answer about its sleep wakes it before the item 3 ends.
async fn two_at_once(ctx: WorkflowContext, _: u64) -> anyhow::Result<u64> {
    let two = async {
        crate::select! {
            _ = ctx.sleep(HOUR) => 8,
            failed = fails(ctx.scope("two"), "late") => 2 + u64::from(!failed),
        }
    };
    let three = fails(ctx.scope("three"), "early").map(|failed| 3 + u64::from(!failed));
    handed_out(&ctx, vec![three.boxed(), two.boxed()]).await
}

#[tokio::test(start_paused = true)]
async fn an_item_that_was_woken_for_nothing_is_not_handed_out_before_its_turn() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), two_at_once);

    let mut early_ends = false;
    let output = loop {
        let report = server.next_report().await;
        let verdict = match &report.body {
            report::Body::SleepScheduled(_) => sleeping(),
            report::Body::StepFailed(failed) => {
                let path = &failed.step.as_ref().unwrap().path;
                assert_eq!(early_ends, path == "two/late", "the order of the record");
                early_ends = true;
                last()
            }
            report::Body::RunCompleted(_) => break run_output(report.body),
            _ => Verdict::Committed,
        };
        report.verdict.expect("the run waits for it").send(verdict).expect("the run waits for it");
        // What was answered is heard before the next answer.
        tokio::task::yield_now().await;
    };

    assert_eq!(output, 132);
}

#[tokio::test(start_paused = true)]
async fn a_replay_hands_out_in_the_same_order() {
    let ended = |entry: v1::JournalEntry, order| v1::JournalEntry { order, ..entry };
    let journal = vec![
        ended(completed("first", 0, "1"), 1),
        entry("sleep", 1, StepStatus::Sleeping),
        ended(entry("three/early", 0, StepStatus::Failed), 2),
        ended(entry("two/late", 0, StepStatus::Failed), 3),
    ];
    let mut server = ScriptedServer::execute(assign("0", journal), two_at_once);

    assert_eq!(recorded(server.commit().await).0, "body");
    assert_eq!(run_output(server.commit().await), 132);
}

/// The same for what was spawned: its end is no part of the record, but the order of ends is.
#[tokio::test(start_paused = true)]
async fn parts_that_ended_while_nobody_looked_are_handed_out_in_the_order_of_their_ends() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let item = |number: u64, name: &'static str| {
            let part = ctx.spawn(fails(ctx.scope(name), name));
            let sleep = ctx.sleep(HOUR);
            async move {
                crate::select! {
                    _ = sleep => 8,
                    failed = part => number + u64::from(!failed),
                }
            }
            .boxed()
        };
        let (three, two) = (item(3, "early"), item(2, "late"));
        handed_out(&ctx, vec![three, two]).await
    });

    // Only the item that ends later is woken before its end.
    let mut sleeps = Vec::new();
    let output = loop {
        let report = server.next_report().await;
        let verdict = match &report.body {
            report::Body::SleepScheduled(sleep) if sleep.step.as_ref().unwrap().path == "sleep" => {
                sleeps.push(report);
                continue;
            }
            report::Body::SleepScheduled(_) => sleeping(),
            report::Body::StepFailed(_) => last(),
            report::Body::RunCompleted(_) => break run_output(report.body),
            _ => Verdict::Committed,
        };
        report.verdict.expect("the run waits for it").send(verdict).expect("the run waits for it");
        tokio::task::yield_now().await;
    };

    assert_eq!((output, sleeps.len()), (132, 1));
}

/// Parts go on in the order in which they were spawned, not in the order of their wakes.
#[tokio::test(start_paused = true)]
async fn parts_that_are_woken_together_call_in_the_order_in_which_they_were_spawned() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let part = |number: u64| {
            let (wake, woken) = tokio::sync::oneshot::channel::<()>();
            let part = ctx.clone();
            let spawned = ctx.spawn(async move {
                woken.await?;
                part.run("same", async move { Ok(number) }).await
            });
            (wake, spawned)
        };
        let ((wake_one, one), (wake_two, two)) = (part(1), part(2));
        ctx.run("before", async { Ok(0_u64) }).await?;
        wake_two.send(()).expect("the part waits");
        wake_one.send(()).expect("the part waits");
        let (one, two) = tokio::try_join!(one, two)?;
        Ok(10 * one + two)
    });

    let mut results = Vec::new();
    let output = loop {
        match server.commit().await {
            end @ report::Body::RunCompleted(_) => break run_output(end),
            step => results.push(recorded(step)),
        }
    };
    let result =
        |path: &str| results.iter().find(|(known, ..)| known == path).map(|(.., json)| json.as_str());
    assert_eq!((result("same"), result("same#2"), output), (Some("1"), Some("2"), 12));
}

/// Whoever only looks from time to time would never be there when something has its turn.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_only_looked_at_now_and_then_hands_out_as_well() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let mut items: FuturesUnordered<_> = [ctx.run("item", async { Ok(7_u64) })].into_iter().collect();
        for looks in 0.. {
            if let Some(Some(item)) = items.next().now_or_never() {
                return Ok(10 * item? + looks);
            }
            ctx.run("work", async { Ok(0_u64) }).await?;
            anyhow::ensure!(looks < 9, "nothing was handed out");
        }
        Ok(0)
    });

    let output = loop {
        if let end @ report::Body::RunCompleted(_) = server.commit().await {
            break run_output(end);
        }
    };
    assert!((71..=73).contains(&output), "{output}");
}

/// More than thirty in one `join_all` are kept in such a stream too.
#[tokio::test(start_paused = true)]
async fn a_wide_join_is_told_one_after_the_other() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let all = (0..200).map(|n| ctx.run("wide", async move { Ok(n) }));
        join_all(all).await.into_iter().sum::<anyhow::Result<u64>>()
    });

    let output = loop {
        match server.commit().await {
            end @ report::Body::RunCompleted(_) => break run_output(end),
            report::Body::StepFailed(failed) => panic!("{:?}", failed_step(report::Body::StepFailed(failed))),
            _ => {}
        }
    };
    assert_eq!(output, (0..200).sum::<u64>());
}
