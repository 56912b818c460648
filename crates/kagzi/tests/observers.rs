//! Observers and the span of a run tell what really happens, and nothing of replays.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kagzi::testing::TestEngine;
use kagzi::workflow::{Observer, RunOutcome, StepFailure};
use kagzi::{RetryPolicy, StepContext, WorkflowContext};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const HOUR: Duration = Duration::from_secs(3600);

/// Keeps what it is told, in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn say(&self, word: String) {
        self.0.lock().unwrap().push(word);
    }

    /// Takes what it was told, once that is so much.
    async fn wait_for(&self, len: usize) -> Vec<String> {
        let came = async {
            while self.0.lock().unwrap().len() < len {
                tokio::task::yield_now().await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(10), came).await;
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Told {
    fn run_began(&self, run: &WorkflowContext) {
        self.say(format!("run began, generation {}", run.generation()));
    }

    fn run_ended(&self, run: &WorkflowContext, outcome: RunOutcome) {
        self.say(format!("run ended {outcome:?}, generation {}", run.generation()));
    }

    fn step_began(&self, step: &StepContext) {
        self.say(format!("{} began {}", step.path(), step.attempt()));
    }

    fn step_ended(&self, step: &StepContext, failure: Option<&StepFailure>) {
        let how = failure.map_or("well", |failure| failure.code.as_str());
        self.say(format!("{} ended {how}", step.path()));
    }
}

/// Panics whenever it is told anything.
struct Broken;

impl Observer for Broken {
    fn run_began(&self, _: &WorkflowContext) {
        panic!("an observer of somebody else");
    }

    fn step_ended(&self, _: &StepContext, _: Option<&StepFailure>) {
        panic!("an observer of somebody else");
    }
}

/// Is replayed after each of its sleeps, and once more in its second generation.
async fn replayed(ctx: WorkflowContext, (): ()) -> anyhow::Result<u32> {
    let one: u32 = ctx.run("one", async { Ok(1) }).await?;
    ctx.sleep(HOUR).await?;
    let policy = RetryPolicy::default().maximum_attempts(2);
    let flaky = ctx.step("flaky").retry_policy(policy).run(|step| async move {
        anyhow::ensure!(step.attempt() > 1, "not at first");
        Ok(2_u32)
    });
    let two = flaky.await?;
    ctx.sleep(HOUR).await?;
    let whole = ctx.run_scope("s", |ctx| async move { ctx.run("three", async { Ok(3) }).await });
    let three: u32 = whole.await?;
    ctx.sleep(HOUR).await?;
    match ctx.generation() {
        1 => ctx.continue_as_new(&()),
        _ => Ok(one + two + three),
    }
}

async fn failing(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.sleep(HOUR).await?;
    anyhow::bail!("no luck")
}

/// Keeps the fields of every `run` span, by its number.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    last: u64,
    runs: HashMap<u64, HashMap<String, String>>,
}

struct Fields<'a>(&'a mut HashMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.to_string(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Spans {
    /// First or not, generation, and how it ended, of the executions of this run in their order.
    fn of(&self, run: &str) -> Vec<String> {
        let spans = self.0.lock().unwrap();
        let mut of_run: Vec<_> = spans.runs.iter().filter(|(_, fields)| fields["run"] == run).collect();
        of_run.sort_by_key(|(number, _)| **number);
        let words = |fields: &HashMap<String, String>| {
            let outcome = fields.get("outcome").map_or("goes on", String::as_str);
            format!("{} {} {outcome}", fields["first"], fields["generation"])
        };
        of_run.into_iter().map(|(_, fields)| words(fields)).collect()
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.0.lock().unwrap();
        spans.last += 1;
        let number = spans.last;
        if span.metadata().name() == "run" {
            span.record(&mut Fields(spans.runs.entry(number).or_default()));
        }
        Id::from_u64(number)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(fields) = self.0.lock().unwrap().runs.get_mut(&id.into_u64()) {
            values.record(&mut Fields(fields));
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn observers_and_spans_tell_what_really_happens_and_nothing_of_replays() {
    let spans = Spans::default();
    tracing::subscriber::set_global_default(spans.clone()).unwrap();
    let engine = TestEngine::start().await;
    let told = Told::default();
    let worker = engine.worker("q").observer(Broken).observer(told.clone());
    let working = tokio::spawn(worker.register("replayed", replayed).register("failing", failing).run());
    engine.skip_time();

    let run = engine.client().workflow("replayed", "q", ()).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 6);

    let generation = |number: u32| {
        let path = |step: &str| if number == 1 { step.to_owned() } else { format!("~{number}/{step}") };
        let (one, flaky, three) = (path("one"), path("flaky"), path("s/three"));
        let end = if number == 1 { "Continued" } else { "Completed" };
        [
            format!("{one} began 1"),
            format!("{one} ended well"),
            format!("{flaky} began 1"),
            format!("{flaky} ended ERROR"),
            format!("{flaky} began 2"),
            format!("{flaky} ended well"),
            format!("{three} began 1"),
            format!("{three} ended well"),
            format!("run ended {end}, generation {number}"),
        ]
    };
    let expected: Vec<String> = ["run began, generation 1".to_owned()]
        .into_iter()
        .chain(generation(1))
        .chain(generation(2))
        .collect();
    // The end of a run is told to its client before its worker hears that it is committed.
    assert_eq!(told.wait_for(expected.len()).await, expected);
    let executions = spans.of(run.run_id());
    assert_eq!(executions.first().map(String::as_str), Some("true 1 parked"), "{executions:?}");
    assert_eq!(executions.last().map(String::as_str), Some("false 2 completed"), "{executions:?}");
    let count = |outcome: &str| executions.iter().filter(|execution| execution.ends_with(outcome)).count();
    assert_eq!((count("continued"), count("completed"), count("goes on")), (1, 1, 0), "{executions:?}");
    assert_eq!(executions.iter().filter(|execution| execution.starts_with("true")).count(), 1);

    let run = engine.client().workflow("failing", "q", ()).await.unwrap();
    assert!(run.result::<()>().await.is_err());
    assert_eq!(told.wait_for(2).await, ["run began, generation 1", "run ended Failed, generation 1"]);
    assert_eq!(spans.of(run.run_id()), ["true 1 parked", "false 1 failed"]);
    working.abort();
    engine.close().await;
}
