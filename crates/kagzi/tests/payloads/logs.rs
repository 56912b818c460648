//! Payloads are never logged, not even where one could not be read.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use kagzi::WorkflowContext;
use kagzi::testing::TestEngine;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::{client, key, work};

const SECRET: &str = "5555-4444";

/// Keeps all that is logged in this process.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<String>>);

impl Visit for Kept {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn price(_: WorkflowContext, cents: u32) -> anyhow::Result<u32> {
    Ok(cents)
}

#[tokio::test]
async fn a_payload_of_another_type_is_told_in_the_log_without_what_it_says() {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(kept.clone()).unwrap();
    let engine = TestEngine::start().await;
    work(&engine, key("k1"), |worker| {
        worker.register("price", price);
    })
    .await;

    let run = client(&engine).workflow("price", "q", format!("card {SECRET}")).await.unwrap();
    let ended = run.finished().await.unwrap();

    // Whoever has the key reads what was wrong; it was stored as something that others cannot read.
    let error = ended.error.expect("it failed").message;
    assert!(error.contains("cannot be decoded") && error.contains(SECRET), "{error}");
    let log = kept.0.lock().unwrap().clone();
    assert!(log.contains(run.run_id()), "the log of the worker is kept");
    assert!(!log.contains(SECRET), "{log}");
    engine.close().await;
}
