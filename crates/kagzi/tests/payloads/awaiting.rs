//! Codecs that have to ask somebody: a key service, say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kagzi::WorkflowContext;
use kagzi::codec::{AsyncPayloadCodec, CodecError, CompressionCodec, Payload};
use kagzi::testing::TestEngine;
use kagzi::workflow::{StepError, StepFailure};

const SEALED: &str = "application/x-sealed";

/// Turns the bits round, once somebody has answered.
#[derive(Clone, Default)]
struct Vault {
    asked: Arc<AtomicU32>,
}

impl Vault {
    /// Answers take their time, and not always the same: no order may hang on it.
    async fn ask(&self, payload: &Payload) -> Vec<u8> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(u64::from(asked % 3))).await;
        payload.data.iter().map(|byte| !byte).collect()
    }
}

impl AsyncPayloadCodec for Vault {
    async fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.data.starts_with(b"\"forbidden") {
            return Err(CodecError::new("the vault refuses this one"));
        }
        let mut data = self.ask(&payload).await;
        data.push(payload.content_type.len() as u8);
        data.extend(payload.content_type.bytes());
        Ok(Payload { data: data.into(), content_type: SEALED.into() })
    }

    async fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.content_type != SEALED {
            return Ok(payload);
        }
        let text = |payload: &Payload, from: usize| {
            String::from_utf8(payload.data[from..].to_vec())
                .map_err(|error| CodecError::new(error.to_string()))
        };
        let at = payload.data.len() - 1;
        let length = (0..=at).rev().find(|length| usize::from(payload.data[at - length]) == *length);
        let begin = at - length.ok_or_else(|| CodecError::new("no content type"))?;
        let content_type = text(&payload, begin + 1)?;
        let inner = Payload { data: payload.data.slice(..begin), content_type: String::new() };
        Ok(Payload { data: self.ask(&inner).await.into(), content_type })
    }
}

/// Everything that a codec sees: an input, results, progress, a failure, a signal, an output.
async fn order(ctx: WorkflowContext, secret: String) -> anyhow::Result<Vec<String>> {
    let (left, right) = (ctx.scope("left"), ctx.scope("right"));
    let (a, b) = tokio::join!(
        left.step("charge").run(|step| {
            step.progress("half");
            let secret = secret.clone();
            async move { Ok(format!("{secret} charged")) }
        }),
        right.run("reserve", async { Ok("reserved in secret".to_owned()) }),
    );
    ctx.sleep(Duration::from_secs(60)).await?;
    let word: String = ctx.signal("word").await?;
    let failing = StepFailure::new("DECLINED", "the secret reason").non_retryable();
    let declined = ctx.run::<(), _>("decline", async move { Err(failing.into()) }).await.unwrap_err();
    let declined = declined.downcast_ref::<StepError>().unwrap().message.clone();
    Ok(vec![a?, b?, word, declined])
}

#[tokio::test]
async fn a_codec_that_awaits_sees_everything_and_a_replay_hears_the_same() {
    let engine = TestEngine::start().await;
    let vault = Vault::default();
    let worker = engine.worker("q").codec(CompressionCodec).async_codec(vault.clone());
    tokio::spawn(worker.register("order", order).run());
    let client = engine.client().codec(CompressionCodec).async_codec(vault.clone());

    let run = client.start("order").queue("q").input("my secret").id("order-1").await.unwrap();
    engine.settle().await;
    run.signal("word", "a secret word").await.unwrap();
    engine.skip_time();
    let said: Vec<String> = run.result().await.unwrap();

    assert_eq!(said, ["my secret charged", "reserved in secret", "a secret word", "the secret reason"]);
    assert!(vault.asked.load(Ordering::Relaxed) > 10);
    // Whoever has no key reads nothing of it, and a repeat is recognised although it looks different.
    for event in engine.client().handle(run.run_id()).events().await.unwrap() {
        let shown = format!("{} {:?}", event.detail, event.payload);
        assert!(!shown.contains("secret"), "{shown}");
    }
    let again = client.start("order").queue("q").input("my secret").id("order-1").await.unwrap();
    assert_eq!(again.run_id(), run.run_id());
    let decoded = client.handle(run.run_id()).events().await.unwrap();
    assert!(decoded.iter().any(|event| format!("{}", event.detail).contains("the secret reason")));
    let listed = client.runs().all().await.unwrap();
    assert_eq!(listed.len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn what_a_codec_that_awaits_refuses_fails_the_call_the_step_or_the_run() {
    async fn forbidden(ctx: WorkflowContext, at: String) -> anyhow::Result<String> {
        if at == "step" {
            return ctx.run("say", async { Ok("forbidden".to_owned()) }).await;
        }
        Ok("forbidden".to_owned())
    }
    let engine = TestEngine::start().await;
    let worker = engine.worker("q").async_codec(Vault::default());
    tokio::spawn(worker.register("forbidden", forbidden).run());
    let client = engine.client().async_codec(Vault::default());

    let refused = client.workflow("forbidden", "q", "forbidden").await.err().unwrap();
    assert!(refused.to_string().contains("the vault refuses this one"), "{refused}");
    for at in ["step", "output"] {
        let run = client.workflow("forbidden", "q", at).await.unwrap();
        let failed = run.result::<String>().await.unwrap_err().to_string();
        assert!(failed.contains("cannot be encoded: the vault refuses this one"), "{at}: {failed}");
    }
    engine.close().await;
}
