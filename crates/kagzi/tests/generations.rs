//! Continuing in place, as users write it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kagzi::client::RunStatus;
use kagzi::testing::{Crashes, TestEngine, crash_everywhere, crash_while_signalled};
use kagzi::workflow::ContinueAsNew;
use kagzi::{Embedded, WorkflowContext};

/// Counts down, one step and one sleep per generation.
async fn countdown(
    ctx: WorkflowContext,
    (left, mut keys): (u32, Vec<String>),
) -> anyhow::Result<Vec<String>> {
    let key: String =
        ctx.step("tick").run(|step| async move { Ok(step.idempotency_key().to_owned()) }).await?;
    keys.push(key);
    ctx.sleep(Duration::from_secs(3600)).await?;
    if left == 0 {
        return Ok(keys);
    }
    ctx.set_label("left", &left.to_string()).await?;
    ctx.continue_as_new(&(left - 1, keys))
}

/// Sums up numbers until it is told to stop, two in each generation.
async fn sum(ctx: WorkflowContext, so_far: Vec<u64>) -> anyhow::Result<Vec<u64>> {
    let mut numbers = so_far;
    for _ in 0..2 {
        match ctx.signal::<Option<u64>>("number").await? {
            Some(number) => numbers.push(ctx.run("noted", async move { Ok(number) }).await?),
            None => return Ok(numbers),
        }
    }
    ctx.continue_as_new(&numbers)
}

#[tokio::test]
async fn a_run_continues_as_itself_and_its_first_client_gets_the_end() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("countdown", countdown);
        })
        .await;
    engine.skip_time();

    let run = engine.client().workflow("countdown", "q", (3, Vec::<String>::new())).id("one").await.unwrap();
    let keys: Vec<String> = run.result().await.unwrap();

    let id = run.run_id();
    let expected = ["tick", "~2/tick", "~3/tick", "~4/tick"].map(|path| format!("wf:{id}:step:{path}"));
    assert_eq!(keys, expected, "each generation has keys of its own");
    let ended = run.describe().await.unwrap();
    assert_eq!((ended.generation, ended.status), (4, RunStatus::Completed));
    assert_eq!(ended.business_id.as_deref(), Some("one"));
    assert_eq!(ended.labels.get("left").map(String::as_str), Some("1"));
    let history = engine.history(id).await;
    let continued = history.events().iter().filter(|event| event.kind == "run_continued").count();
    assert_eq!(continued, 2, "two generations are left");
    assert_eq!(history.events()[0].kind, "run_started");
}

#[tokio::test]
async fn a_crash_at_any_commit_continues_exactly_once() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("countdown", countdown);
    };

    let report = crash_everywhere(register, "countdown", (2, Vec::<String>::new())).await;

    assert!(report.crash_points() > 20, "{report}");
    assert_eq!(report.executions_of("~2/tick"), 1);
}

#[tokio::test]
async fn signals_that_come_while_workers_die_and_the_run_continues_are_taken_once_and_in_order() {
    for crashes in [Crashes::Never, Crashes::AfterEveryReport] {
        let numbers = (0..9_u64).map(Some).chain([None]);
        let told = numbers.map(|number| ("number".to_owned(), number.into())).collect();
        let register = |worker: &mut kagzi::Worker| {
            worker.register("sum", sum);
        };

        let trial = crash_while_signalled(register, "sum", Vec::<u64>::new(), crashes, told).await;

        trial.history.assert_completed();
        assert_eq!(trial.history.run().output::<Vec<u64>>().unwrap(), (0..9).collect::<Vec<_>>());
    }
}

/// One generation per signal.
async fn endless(ctx: WorkflowContext, taken: u64) -> anyhow::Result<u64> {
    match ctx.signal::<Option<u64>>("number").await? {
        // What comes next must be what was sent next: nothing is lost, doubled or overtaken.
        Some(number) if number == taken => ctx.continue_as_new(&(taken + 1)),
        Some(number) => anyhow::bail!("{number} came after {taken}"),
        None => Ok(taken),
    }
}

/// `scripts/test.sh soak` asks for more.
fn generations() -> u64 {
    std::env::var("KAGZI_GENERATIONS").map_or(1_000, |text| text.parse().expect("a number"))
}

#[tokio::test]
async fn a_run_that_continues_a_thousand_times_loses_no_signal_and_keeps_a_flat_history() {
    let home = tempfile::tempdir().unwrap();
    let kagzi = Embedded::open(home.path().join("kagzi.db")).await.unwrap();
    let mut worker = kagzi.worker("q").build().await.unwrap();
    worker.register("endless", endless);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());
    let run = kagzi.client().workflow("endless", "q", 0_u64).await.unwrap();
    let first = tokio::spawn({
        let run = run.clone();
        async move { run.result::<u64>().await }
    });
    let (began, most) = (Instant::now(), generations());

    let mut longest = 0;
    for number in 0..most {
        run.signal("number", &Some(number)).id(number.to_string()).await.unwrap();
        if number % 50 == 49 {
            // Ahead of the run, but not by all that it may have unread.
            while u64::from(run.describe().await.unwrap().generation) + 100 < number {
                tokio::task::yield_now().await;
            }
            let count = run.events().await.unwrap().len();
            longest = longest.max(count);
        }
    }
    // Too late to count once more.
    assert!(run.signal("number", &Some(0)).id((most - 1).to_string()).await.unwrap().already);
    run.signal("number", &None::<u64>).await.unwrap();

    assert_eq!(first.await.unwrap().unwrap(), most);
    eprintln!("{most} generations in {:?}, {longest} events at the most", began.elapsed());
    // The signals that lie there, what two generations hold, and no more.
    assert!(longest < 300, "{longest} events");
    let ended = run.describe().await.unwrap();
    assert_eq!(u64::from(ended.generation), most + 1);
    stop.cancel();
    working.await.unwrap().unwrap();
    kagzi.close().await;
}

#[tokio::test]
async fn an_input_that_is_too_large_fails_the_run_with_words() {
    let engine = TestEngine::start().await;
    let large = |ctx: WorkflowContext, _: String| async move {
        ctx.continue_as_new::<()>(&"x".repeat(3 * 1024 * 1024))
    };
    engine
        .work("q", |worker| {
            worker.register("large", large);
        })
        .await;

    let run = engine.client().workflow("large", "q", "small").await.unwrap();
    let failed = run.result::<()>().await.unwrap_err().to_string();

    assert!(failed.contains("the input of the next generation exceeds maximum size"), "{failed}");
    assert_eq!(run.describe().await.unwrap().generation, 1);
}

#[tokio::test]
async fn the_word_may_pass_through_helpers_and_middleware_knows_it() {
    let engine = TestEngine::start().await;
    let told = Arc::new(AtomicBool::new(false));
    let known = told.clone();
    let helped = move |ctx: WorkflowContext, round: u32| {
        let known = known.clone();
        async move {
            async fn next(ctx: &WorkflowContext, round: u32) -> anyhow::Result<String> {
                Err(ctx.continue_as_new::<String>(&(round + 1)).unwrap_err().context("in a helper"))
            }
            if round < 3 {
                let word = next(&ctx, round).await;
                let is_known = word.as_ref().unwrap_err().downcast_ref::<ContinueAsNew>().is_some();
                known.store(is_known, Ordering::SeqCst);
                return word;
            }
            Ok(format!("round {round}"))
        }
    };
    engine
        .work("q", |worker| {
            worker.register("helped", helped);
        })
        .await;

    let run = engine.client().workflow("helped", "q", 1_u32).await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap(), "round 3");
    assert!(told.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_run_that_waits_in_a_later_generation_says_which() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("sum", sum);
        })
        .await;
    let run = engine.client().workflow("sum", "q", Vec::<u64>::new()).await.unwrap();
    for number in 0..4_u64 {
        run.signal("number", &Some(number)).await.unwrap();
    }
    engine.settle().await;

    let why = run.explain().await.unwrap().sentence;
    assert!(why.contains("it waits for a signal on 'number'"), "{why}");
    assert!(why.contains("generation 3"), "{why}");
    run.signal("number", &None::<u64>).await.unwrap();
    assert_eq!(run.result::<Vec<u64>>().await.unwrap(), [0, 1, 2, 3]);
}
