//! The outbox of the store, as the couriers' rounds ask it.

use std::collections::HashMap;

use async_trait::async_trait;
use kagzi_engine::{Engine, EngineError};
use kagzi_model::{
    Millis, Timestamp,
    intervention::{Contact as KeptContact, Intervention, Notice},
};
use kagzi_notices::{
    Channel, Contact, Due, Facts, Outbox, OutboxError, Settled,
    message::{NamespaceTexts, TextsFile},
};
use kagzi_store::{SettleNotice, TakeNotices};
use parking_lot::Mutex;

/// Takes notices through the engine, with everything that their texts are made of.
pub struct StoreOutbox {
    engine: Engine,
    texts: TextsFile,
    /// The rows of what is on its way, by their ids: a row is written whole. One that is never settled is
    /// replaced when it is taken again.
    taken: Mutex<HashMap<String, Notice>>,
}

impl StoreOutbox {
    pub fn new(engine: Engine, texts: TextsFile) -> StoreOutbox {
        StoreOutbox { engine, texts, taken: Mutex::default() }
    }

    async fn due(&self, notice: &Notice) -> Result<Due, EngineError> {
        let namespace = &notice.question.namespace;
        let kept = self.engine.noun::<KeptContact>(namespace, &notice.recipient).await?;
        // A contact that was deleted has no address any more; the courier says so and gives up.
        let contact = Contact::of(&notice.recipient, &kept.unwrap_or_default());
        let question = self.engine.store().intervention(&notice.question).await?;
        let NamespaceTexts { texts, payloads_allowed } = self.texts.of(namespace);
        Ok(Due {
            id: notice.id.to_string(),
            occasion: notice.message,
            facts: question.as_ref().map(facts).unwrap_or_default(),
            contact,
            tries: notice.attempts,
            created_at: notice.created_at,
            texts,
            payloads_allowed,
        })
    }
}

#[async_trait]
impl Outbox for StoreOutbox {
    async fn take(
        &self,
        channel: Channel,
        now: Timestamp,
        max: usize,
        lease_ms: Millis,
    ) -> Result<Vec<Due>, OutboxError> {
        let take = TakeNotices { channel, until: now.plus_ms(lease_ms), limit: max };
        let notices = self.engine.store().ask(take).await.map_err(|error| OutboxError(error.to_string()))?;
        let mut taken = Vec::with_capacity(notices.len());
        for notice in notices {
            match self.due(&notice).await {
                Ok(due) => {
                    self.taken.lock().insert(due.id.clone(), notice);
                    taken.push(due);
                }
                // It is taken again when its lease runs out; its neighbours need not wait for that.
                Err(error) => tracing::warn!(notice = %notice.id, %error, "a notice could not be read"),
            }
        }
        Ok(taken)
    }

    async fn settle(&self, due: &Due, settled: &Settled, now: Timestamp) -> Result<(), OutboxError> {
        let Some(mut row) = self.taken.lock().remove(&due.id) else { return Ok(()) };
        row.state = settled.state();
        match settled {
            Settled::Sent => {
                row.attempts = row.attempts.saturating_add(1);
                (row.next_at, row.sent_at, row.last_error) = (None, Some(now), None);
            }
            Settled::Retrying { next_at, error } => {
                row.attempts = row.attempts.saturating_add(1);
                (row.next_at, row.last_error) = (Some(*next_at), Some(error.clone()));
            }
            Settled::GivenUp { error } => {
                row.attempts = row.attempts.saturating_add(1);
                (row.next_at, row.last_error) = (None, Some(error.clone()));
            }
            Settled::Held { until } => {
                // What was tried before stays what it was.
                row.next_at = Some(*until);
                if row.attempts > 0 {
                    row.state = kagzi_notices::State::Retrying;
                }
            }
        }
        self.engine.store().ask(SettleNotice(row)).await.map_err(|error| OutboxError(error.to_string()))
    }
}

/// What is known about a question now.
fn facts(question: &Intervention) -> Facts {
    let answered = question.answered.as_ref();
    Facts {
        namespace: question.key.namespace.to_string(),
        question: question.key.id.to_string(),
        kind: question.ask.kind.name().to_owned(),
        title: question.ask.title.clone(),
        workflow_type: question.workflow_type.to_string(),
        run: question.run.to_string(),
        step: question.step.to_string(),
        severity: question.severity,
        due_at: question.expires_at,
        by: answered.map(|answered| answered.by.to_string()).unwrap_or_default(),
        reason: question.cancelled.clone().unwrap_or_default(),
        message: question.ask.message.clone(),
        details: question.ask.details.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}
