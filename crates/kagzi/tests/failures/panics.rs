//! Code of other people that is called by the SDK and panics: codecs, `Display`, `Drop`, `Serialize` and
//! `Deserialize`. Wherever it happens, the run fails or waits for a person, after few executions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kagzi::client::RunStatus;
use kagzi::codec::{AsyncPayloadCodec, CodecError, Payload, PayloadCodec};
use kagzi::testing::{History, TestEngine};
use kagzi::worker::WorkerBuilder;
use kagzi::{RetryPolicy, WorkflowContext};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A run that is given back again and again is paused after at most so many executions, see
/// `kagzi_model::limits`.
const DISPATCHES_MAX: u32 = 12;
const HOUR: Duration = Duration::from_secs(3600);

/// Panics at what contains the word.
#[derive(Clone, Copy)]
struct Touchy {
    encoding: &'static str,
    decoding: &'static str,
}

const NEVER: &str = "\0";

fn contains(payload: &Payload, word: &str) -> bool {
    payload.data.windows(word.len()).any(|bytes| bytes == word.as_bytes())
}

impl PayloadCodec for Touchy {
    fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        assert!(!contains(&payload, self.encoding), "the codec panicked while it encoded");
        Ok(payload)
    }

    fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        assert!(!contains(&payload, self.decoding), "the codec panicked while it decoded");
        Ok(payload)
    }
}

/// The same, after it has asked somebody.
struct Asking(Touchy);

impl AsyncPayloadCodec for Asking {
    async fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        tokio::task::yield_now().await;
        PayloadCodec::encode(&self.0, payload)
    }

    async fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        tokio::task::yield_now().await;
        PayloadCodec::decode(&self.0, payload)
    }
}

/// Executes the workflow on a worker with this codec, and on one whose codec awaits something first, which
/// must make no difference.
async fn played<F, Fut, I, O>(codec: Touchy, function: F) -> History
where
    F: Fn(WorkflowContext, I) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<O>> + Send + 'static,
    I: serde::de::DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
{
    let asking = played_by(|worker| worker.async_codec(Asking(codec)), function.clone()).await;
    let history = played_by(|worker| worker.codec(codec), function).await;
    let end = |history: &History| {
        let run = history.run().clone();
        (run.status, run.error.map(|error| (error.code, error.message)), run.status_detail)
    };
    assert_eq!(end(&asking), end(&history));
    history
}

/// Executes the workflow until it ends or waits for a person.
async fn played_by<F, Fut, I, O>(codec: impl FnOnce(WorkerBuilder) -> WorkerBuilder, function: F) -> History
where
    F: Fn(WorkflowContext, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<O>> + Send + 'static,
    I: serde::de::DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
{
    let engine = TestEngine::start().await;
    let mut worker = codec(engine.worker("q")).build().await.unwrap();
    worker.register("rude", function);
    let worker = tokio::spawn(worker.run());
    engine.skip_time();
    let run = engine.client().workflow("rude", "q", "input").await.unwrap();
    let began = std::time::Instant::now();
    let history = loop {
        let history = engine.history(run.run_id()).await;
        match history.run().status {
            RunStatus::Completed | RunStatus::Failed | RunStatus::Paused => break history,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        assert!(began.elapsed() < Duration::from_secs(30), "the run does not end: {history}");
    };
    assert!(!worker.is_finished(), "the worker died: {history}");
    history
}

fn touchy(encoding: &'static str, decoding: &'static str) -> Touchy {
    Touchy { encoding, decoding }
}

fn calm() -> Touchy {
    touchy(NEVER, NEVER)
}

/// Fails if the panic was retried for ever or did not get through.
fn assert_ended(history: &History, status: RunStatus) {
    let run = history.run();
    assert_eq!(run.status, status, "{history}");
    assert!(run.dispatch_count <= DISPATCHES_MAX, "executed {} times: {history}", run.dispatch_count);
    let panicked = run.error.as_ref().is_some_and(|error| error.code == "PANIC");
    assert!(status == RunStatus::Paused || panicked, "{history}");
}

fn twice() -> RetryPolicy {
    RetryPolicy::default().maximum_attempts(2)
}

#[tokio::test]
async fn a_codec_that_panics_at_the_input_pauses_the_run() {
    let function = |_: WorkflowContext, input: String| async move { Ok(input) };
    assert_ended(&played(touchy(NEVER, "input"), function).await, RunStatus::Paused);
}

#[tokio::test]
async fn a_codec_that_panics_at_a_recorded_result_pauses_the_run() {
    let function = |ctx: WorkflowContext, _: String| async move {
        let value: String = ctx.run("step", async { Ok("recorded".to_owned()) }).await?;
        ctx.sleep(HOUR).await?;
        Ok(value)
    };
    assert_ended(&played(touchy(NEVER, "recorded"), function).await, RunStatus::Paused);
}

#[tokio::test]
async fn a_codec_that_panics_at_a_result_fails_the_step() {
    let function = |ctx: WorkflowContext, _: String| async move {
        ctx.step("step").retry_policy(twice()).run(|_| async { Ok("made".to_owned()) }).await
    };
    assert_ended(&played(touchy("made", NEVER), function).await, RunStatus::Failed);
}

#[tokio::test]
async fn a_codec_that_panics_at_the_output_fails_the_run() {
    let function = |_: WorkflowContext, _: String| async move { Ok("made".to_owned()) };
    assert_ended(&played(touchy("made", NEVER), function).await, RunStatus::Failed);
}

#[tokio::test]
async fn a_codec_that_panics_at_a_failure_of_a_step_or_run_fails_the_run() {
    let step = |ctx: WorkflowContext, _: String| async move {
        let failing = |_| async { Err::<String, _>(anyhow::anyhow!("made")) };
        ctx.step("step").retry_policy(twice()).run(failing).await
    };
    let run = |_: WorkflowContext, _: String| async move { Err::<String, _>(anyhow::anyhow!("made")) };

    // The code of the failure gets through, and its text is withheld.
    for history in [played(touchy("made", NEVER), step).await, played(touchy("made", NEVER), run).await] {
        history.assert_failed("ERROR");
        assert!(history.run().dispatch_count <= 2, "{history}");
    }
}

#[tokio::test]
async fn a_codec_that_panics_at_progress_does_not_disturb_the_step() {
    let function = |ctx: WorkflowContext, _: String| async move {
        let step = ctx.step("step").retry_policy(twice());
        step.run(|step| async move {
            step.progress("made");
            tokio::time::sleep(Duration::from_millis(700)).await;
            Ok("done".to_owned())
        })
        .await
    };
    let history = played(touchy("made", NEVER), function).await;
    history.assert_completed();
}

#[derive(Debug)]
struct Rude;

impl std::fmt::Display for Rude {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Rude {}

#[tokio::test]
async fn an_error_without_words_fails_its_step_or_run() {
    let step = |ctx: WorkflowContext, _: String| async move {
        ctx.step("step").retry_policy(twice()).run(|_| async { Err::<String, _>(Rude.into()) }).await
    };
    let run = |_: WorkflowContext, _: String| async move { Err::<String, _>(Rude.into()) };

    assert_ended(&played(calm(), step).await, RunStatus::Failed);
    assert_ended(&played(calm(), run).await, RunStatus::Failed);
}

/// Panics when it is dropped, unless that would be a second panic at a time.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bomb")
    }
}

impl std::error::Error for Bomb {}

#[tokio::test]
async fn whatever_panics_when_it_is_dropped_fails_the_run() {
    let kept = |ctx: WorkflowContext, _: String| async move {
        let _bomb = Bomb;
        ctx.sleep(HOUR).await?;
        Ok(String::new())
    };
    let in_step = |ctx: WorkflowContext, _: String| async move {
        let code = |_| async {
            let _bomb = Bomb;
            tokio::task::yield_now().await;
            Ok(String::new())
        };
        ctx.step("step").retry_policy(twice()).run(code).await
    };
    let raced = |ctx: WorkflowContext, _: String| async move {
        let step = ctx.run("step", async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
            Ok(String::new())
        });
        kagzi::select! {
            slept = ctx.sleep(Duration::ZERO) => slept.map(|()| String::new()),
            step = step => step,
        }
    };

    assert_ended(&played(calm(), kept).await, RunStatus::Failed);
    assert_ended(&played(calm(), in_step).await, RunStatus::Failed);
    assert_ended(&played(calm(), raced).await, RunStatus::Failed);
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_dropped_fails_its_step_or_run() {
    let step = |ctx: WorkflowContext, _: String| async move {
        ctx.step("step").retry_policy(twice()).run(|_| async { Err::<String, _>(Bomb.into()) }).await
    };
    let run = |_: WorkflowContext, _: String| async move { Err::<String, _>(Bomb.into()) };

    assert_ended(&played(calm(), step).await, RunStatus::Failed);
    assert_ended(&played(calm(), run).await, RunStatus::Failed);
}

/// Can be written and read, until it may not.
struct Fragile(&'static AtomicBool);

impl Serialize for Fragile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0.load(Ordering::SeqCst), "not to be written");
        serializer.serialize_str("fragile")
    }
}

static READ_BREAKS: AtomicBool = AtomicBool::new(false);
static WRITE_BREAKS: AtomicBool = AtomicBool::new(true);

impl<'de> Deserialize<'de> for Fragile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fragile, D::Error> {
        assert!(!READ_BREAKS.load(Ordering::SeqCst), "not to be read");
        String::deserialize(deserializer)?;
        Ok(Fragile(&READ_BREAKS))
    }
}

#[tokio::test]
async fn values_that_panic_when_they_are_read_or_written_end_the_run() {
    let output = |_: WorkflowContext, _: String| async move { Ok(Fragile(&WRITE_BREAKS)) };
    let result = |ctx: WorkflowContext, _: String| async move {
        let step = ctx.step("step").retry_policy(twice());
        step.run(|_| async { Ok(Fragile(&WRITE_BREAKS)) }).await.map(|_| String::new())
    };
    let replayed = |ctx: WorkflowContext, _: String| async move {
        let _: Fragile = ctx.run("step", async { Ok(Fragile(&READ_BREAKS)) }).await?;
        READ_BREAKS.store(true, Ordering::SeqCst);
        ctx.sleep(HOUR).await?;
        Ok(String::new())
    };
    let input = |_: WorkflowContext, _: Fragile| async move { Ok(String::new()) };

    assert_ended(&played(calm(), output).await, RunStatus::Failed);
    assert_ended(&played(calm(), result).await, RunStatus::Failed);
    assert_ended(&played_by(|worker| worker.codec(calm()), replayed).await, RunStatus::Paused);
    READ_BREAKS.store(false, Ordering::SeqCst);
    assert_ended(&played_by(|worker| worker.async_codec(Asking(calm())), replayed).await, RunStatus::Paused);
    assert_ended(&played(calm(), input).await, RunStatus::Failed);
}
