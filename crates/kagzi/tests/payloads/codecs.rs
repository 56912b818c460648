use kagzi::WorkflowContext;
use kagzi::client::RunStatus;
use kagzi::codec::{CodecError, Payload, PayloadCodec};
use kagzi::testing::TestEngine;

/// A codec of a user's own, which can also refuse.
struct Rot13;

impl PayloadCodec for Rot13 {
    fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.data.windows(9).any(|bytes| bytes == b"forbidden") {
            return Err(CodecError::new("this word is not for the server"));
        }
        // The content type is kept in the new one, so that it comes back.
        let content_type = format!("application/x-rot13+{}", payload.content_type.replace('/', "."));
        Ok(Payload { data: payload.data.iter().map(turn).collect(), content_type })
    }

    fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        let Some(inner) = payload.content_type.strip_prefix("application/x-rot13+") else {
            return Ok(payload);
        };
        Ok(Payload {
            data: payload.data.iter().map(turn).collect(),
            content_type: inner.replacen('.', "/", 1),
        })
    }
}

fn turn(byte: &u8) -> u8 {
    match byte {
        b'a'..=b'z' => (byte - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (byte - b'A' + 13) % 26 + b'A',
        other => *other,
    }
}

async fn engine_with_greeter() -> TestEngine {
    let engine = TestEngine::start().await;
    let mut worker = engine.worker("q").codec(Rot13).build().await.unwrap();
    worker.register("greet", |ctx: WorkflowContext, name: String| async move {
        ctx.run("greet", async move {
            anyhow::ensure!(name != "nobody", "nobody is there");
            Ok(format!("hello {name}"))
        })
        .await
    });
    tokio::spawn(worker.run());
    engine
}

#[tokio::test]
async fn a_codec_of_your_own_is_applied_on_both_sides() {
    let engine = engine_with_greeter().await;

    let run = engine.client().codec(Rot13).workflow("greet", "q", "Ada").await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap(), "hello Ada");
    let stored = engine.client().get(run.run_id()).await.unwrap();
    assert_eq!(
        (stored.input.unwrap().data, stored.output.unwrap().data),
        ("\"Nqn\"".into(), "\"uryyb Nqn\"".into())
    );
}

#[tokio::test]
async fn an_input_from_before_the_codec_is_still_read() {
    let engine = engine_with_greeter().await;

    let run = engine.client().workflow("greet", "q", "Ada").await.unwrap();

    assert_eq!(
        engine.client().codec(Rot13).handle(run.run_id()).result::<String>().await.unwrap(),
        "hello Ada"
    );
}

#[tokio::test]
async fn what_a_codec_refuses_is_no_start_and_a_final_failure_of_a_step() {
    let engine = engine_with_greeter().await;
    let client = engine.client().codec(Rot13);

    let refused = client.workflow("greet", "q", "forbidden").await.err().unwrap().to_string();
    assert!(refused.contains("the run's input") && refused.contains("not for the server"), "{refused}");

    // Plain, so that only the worker's codec sees the word.
    let run = engine.client().workflow("greet", "q", "forbidden").await.unwrap();
    let failed = client.handle(run.run_id()).finished().await.unwrap();
    let error = failed.error.clone().unwrap();
    assert_eq!((failed.status, error.code.as_str()), (RunStatus::Failed, "INVALID_OUTPUT"));
    assert!(error.message.contains("not for the server"), "{}", error.message);
}

#[tokio::test]
async fn error_messages_are_encoded_too() {
    let engine = engine_with_greeter().await;
    let run = engine.client().codec(Rot13).workflow("greet", "q", "nobody").retries(1).await.unwrap();

    let message = |run: kagzi::client::Run| run.error.unwrap().message;
    let seen = message(run.finished().await.unwrap());
    let stored = message(engine.client().get(run.run_id()).await.unwrap());

    assert!(seen.contains("nobody is there"), "{seen}");
    assert!(!stored.contains("nobody"), "{stored}");
}

#[tokio::test]
async fn a_schedules_input_is_encoded_and_making_it_twice_makes_one() {
    let engine = engine_with_greeter().await;
    let client = engine.client().codec(Rot13);
    let make = |name: &'static str| client.schedule("daily", "greet", "q", name).cron("@daily");

    make("Ada").await.unwrap();
    make("Ada").await.unwrap();
    let other = make("Bob").await;

    assert!(other.is_err(), "the same id with another input");
    let stored = engine.client().schedule_handle("daily").describe().await.unwrap().input.unwrap();
    assert_eq!(stored.data, "\"Nqn\"");
    let read = client.schedule_handle("daily").describe().await.unwrap().input.unwrap();
    assert_eq!(read.data, "\"Ada\"");
    let triggered = client.schedule_handle("daily").trigger().await.unwrap();
    assert_eq!(triggered.result::<String>().await.unwrap(), "hello Ada");
    let attempts = triggered.attempts().all().await.unwrap();
    assert_eq!(attempts[0].output.as_ref().unwrap().data, "\"hello Ada\"");
}
