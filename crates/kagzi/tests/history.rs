//! A run's history through the SDK: filtered, from either end, in pages both ways.

use std::time::Duration;

use kagzi::client::{Page, RunHandle};
use kagzi::error::Code;
use kagzi::history::{Event, RunHistory, StepAttempt, StepStatus};
use kagzi::testing::TestEngine;
use kagzi::{Error, RetryPolicy, WorkflowContext};

async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    for item in 0..5 {
        ctx.run(&format!("pack-{item}"), async { Ok(()) }).await?;
    }
    ctx.sleep(Duration::from_secs(3600)).await?;
    let charge = ctx.step("charge").retry_policy(RetryPolicy::default().maximum_attempts(2));
    let refused: anyhow::Result<()> = charge.run(|_| async { anyhow::bail!("no money") }).await;
    assert!(refused.is_err());
    Ok(())
}

async fn ended(engine: &TestEngine) -> RunHandle {
    engine
        .work("orders", |worker| {
            worker.register("order", order);
        })
        .await;
    engine.skip_time();
    let run = engine.client().workflow("order", "orders", ()).await.unwrap();
    run.result::<()>().await.unwrap();
    run
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence).collect()
}

/// All pages from the first to the last, and back to the first.
async fn both_ways(history: &RunHistory) -> (Vec<u64>, Vec<u64>) {
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut page: Page<Event> = history.page("").await.unwrap();
    assert_eq!(page.previous, None, "nothing is before the first page");
    loop {
        there.extend(numbers(&page.rows));
        if page.next.is_none() {
            break;
        }
        page = history.page(page.next.unwrap()).await.unwrap();
    }
    loop {
        back.splice(0..0, numbers(&page.rows));
        if page.previous.is_none() {
            return (there, back);
        }
        page = history.page(page.previous.unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn pages_of_a_history_meet_and_do_not_overlap_from_either_end_and_both_ways() {
    let engine = TestEngine::start().await;
    let run = ended(&engine).await;
    let all = numbers(&run.events().await.unwrap());
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());

    for size in [1, 3, 100] {
        let (there, back) = both_ways(&run.history().page_size(size)).await;
        assert_eq!((&there, &back), (&all, &all), "{size} at a time");
        let (there, back) = both_ways(&run.history().page_size(size).newest_first()).await;
        let down: Vec<_> = all.iter().rev().copied().collect();
        assert_eq!((&there, &back), (&down, &down), "{size} at a time, the newest first");
    }
    let later = numbers(&run.history().after(4).all().await.unwrap());
    assert_eq!(later, all[4..]);
    engine.close().await;
}

#[tokio::test]
async fn a_history_is_filtered_by_kind_step_and_time() {
    let engine = TestEngine::start().await;
    let run = ended(&engine).await;
    let all = run.events().await.unwrap();
    let woken = all.iter().find(|event| event.kind == "step_failed").unwrap().at;
    let expected = |keep: &dyn Fn(&Event) -> bool| {
        let kept: Vec<_> = all.iter().filter(|event| keep(event)).map(|event| event.sequence).collect();
        assert!(!kept.is_empty() && kept.len() < all.len(), "the filter tells some from others");
        kept
    };
    let read = async |history: RunHistory| both_ways(&history.page_size(2)).await;

    let kinds = run.history().kind("step_completed").kind("step_failed");
    let steps = expected(&|event| ["step_completed", "step_failed"].contains(&event.kind.as_str()));
    assert_eq!(read(kinds).await, (steps.clone(), steps));
    let charge = expected(&|event| event.step.as_deref() == Some("charge"));
    assert_eq!(read(run.history().step("charge")).await, (charge.clone(), charge));
    let late = expected(&|event| event.at >= woken);
    assert_eq!(read(run.history().from(woken)).await, (late.clone(), late.clone()));
    let early: Vec<_> = (1..=all.len() as u64).filter(|number| !late.contains(number)).collect();
    assert_eq!(read(run.history().to(woken)).await, (early.clone(), early));
    assert!(run.history().kind("step_failed").step("pack-1").all().await.unwrap().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_field_and_value() {
    let engine = TestEngine::start().await;
    let run = ended(&engine).await;
    let refused = async |history: RunHistory, token: &str| match history.page(token).await.unwrap_err() {
        Error::Refused(refusal) if refusal.code == Code::InvalidArgument => refusal.message,
        error => panic!("{error}"),
    };
    let token = run.history().page_size(2).page("").await.unwrap().next.unwrap();
    let now = engine.now();

    let foreign = [
        refused(run.history().newest_first(), &token).await,
        refused(run.history().kind("step_failed"), &token).await,
        refused(run.history().step("charge"), &token).await,
        refused(run.history().from(now), &token).await,
        refused(run.history().after(1), &token).await,
    ];
    let broken = refused(run.history(), "nonsense").await;
    let kind = refused(run.history().kind("step_exploded"), "").await;
    let range = refused(run.history().from(now).to(now - Duration::from_secs(1)), "").await;

    for message in foreign {
        assert!(
            message.starts_with("page_token is ") && message.contains("start again without"),
            "{message}"
        );
    }
    assert!(broken.starts_with("page_token is \"nonsense\": it is not a token"), "{broken}");
    assert!(kind.starts_with("kinds is \"step_exploded\": it must be one of run_started,"), "{kind}");
    assert!(range.starts_with("from is ") && range.contains("later than to"), "{range}");
    assert_eq!(run.history().page_size(3).page(&token).await.unwrap().rows.len(), 3, "sizes may change");
    engine.close().await;
}

#[tokio::test]
async fn step_attempts_are_listed_filtered_and_in_pages_both_ways() {
    let engine = TestEngine::start().await;
    let run = ended(&engine).await;
    let paths = |attempts: &[StepAttempt]| {
        attempts.iter().map(|one| format!("{} {}", one.step, one.attempt)).collect::<Vec<_>>()
    };

    let by_three = run.attempts().page_size(3);
    let mut there = Vec::new();
    let mut page = by_three.page("").await.unwrap();
    loop {
        there.extend(paths(&page.rows));
        if page.next.is_none() {
            break;
        }
        page = by_three.page(page.next.unwrap()).await.unwrap();
    }
    let mut back = paths(&page.rows);
    while page.previous.is_some() {
        page = by_three.page(page.previous.unwrap()).await.unwrap();
        back.splice(0..0, paths(&page.rows));
    }

    assert_eq!(there, paths(&run.attempts().all().await.unwrap()));
    assert_eq!(back, there);
    assert_eq!((there.len(), there.last().unwrap().as_str()), (8, "charge 2"));
    let failed = run.attempts().status(StepStatus::Failed).all().await.unwrap();
    assert_eq!(paths(&failed), ["charge 1", "charge 2"]);
    assert_eq!(failed[0].error.as_ref().unwrap().message, "no money");
    assert_eq!(paths(&run.attempts().step("pack-3").all().await.unwrap()), ["pack-3 1"]);
    engine.close().await;
}
