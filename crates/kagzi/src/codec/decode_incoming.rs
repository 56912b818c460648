//! Everything that the server says, decoded where it arrives: an assigned run, a run, a step attempt, a line
//! of history.

use kagzi_proto::v1::{self, Assign, Failure, JournalEntry, RunEvent, StepAttempt, WorkflowRun};
use serde_json::Value;

use super::{CodecError, Codecs};
use crate::{codes, failure};

impl Codecs {
    /// Decodes all that a run begins with. The error says what could not be decoded.
    pub(crate) async fn decode_assign(&self, assign: &mut Assign) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        if let Some(input) = assign.input.take() {
            let decoded = self.decode_input(input).await;
            assign.input =
                Some(decoded.map_err(|error| format!("the run's input cannot be decoded: {error}"))?);
        }
        for entry in &mut assign.journal {
            let decoded = self.decode_entry(entry).await;
            decoded.map_err(|error| {
                let path = entry.step.as_ref().map_or("", |step| step.path.as_str());
                format!("what was recorded of step '{path}' cannot be decoded: {error}")
            })?;
        }
        Ok(())
    }

    async fn decode_entry(&self, entry: &mut JournalEntry) -> Result<(), CodecError> {
        // What strangers send is an error for the code that waits for it, and no reason to pause the run.
        if !entry.signal_id.is_empty() {
            self.decode_signal(entry).await;
            return Ok(());
        }
        self.decode_in_place(&mut entry.result).await?;
        self.decode_in_place(&mut entry.progress).await?;
        self.decode_failed(entry.failure.as_deref_mut()).await
    }

    async fn decode_failed(&self, failure: Option<&mut Failure>) -> Result<(), CodecError> {
        match failure {
            Some(failure) => self.decode_failure(failure).await,
            None => Ok(()),
        }
    }

    /// Decodes what somebody sent. What cannot be decoded has failed, as it had when it was first heard of.
    async fn decode_signal(&self, entry: &mut JournalEntry) {
        if let Some(failure) = entry.failure.as_mut()
            && let Err(error) = self.decode_failure(failure).await
        {
            tracing::debug!(%error, "a failure that somebody sent is shown as it came");
        }
        if let Err(error) = self.decode_in_place(&mut entry.result).await {
            let message = format!("the signal cannot be decoded: {error}");
            entry.failure = Some(Box::new(failure::new(codes::INVALID_INPUT, message, true)));
            entry.result = None;
            entry.set_status(v1::StepStatus::Failed);
        }
    }

    /// Decodes a run as clients see it.
    pub(crate) async fn decode_run(&self, run: &mut WorkflowRun) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        // Boxed here and below: what is large and rare would be part of every call's future.
        let decoding = async {
            if let Some(input) = run.input.take() {
                run.input = Some(self.decode_input(input).await?);
            }
            self.decode_in_place(&mut run.output).await?;
            self.decode_failed(run.error.as_mut()).await
        };
        Box::pin(decoding).await
    }

    /// Decodes what a step did.
    pub(crate) async fn decode_attempt(&self, attempt: &mut StepAttempt) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        let decoding = async {
            self.decode_in_place(&mut attempt.output).await?;
            self.decode_failed(attempt.error.as_mut()).await
        };
        Box::pin(decoding).await
    }

    /// Decodes a line of history, the messages inside its details too.
    pub(crate) async fn decode_event(&self, event: &mut RunEvent) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        let decoding = async {
            self.decode_in_place(&mut event.payload).await?;
            if let Ok(mut details) = serde_json::from_str::<Value>(&event.detail_json) {
                self.decode_texts(&mut details).await?;
                event.detail_json = details.to_string();
            }
            Ok(())
        };
        Box::pin(decoding).await
    }

    async fn decode_texts(&self, details: &mut Value) -> Result<(), CodecError> {
        let mut open = vec![details];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => *text = self.decode_text(std::mem::take(text)).await?,
                Value::Array(values) => open.extend(values),
                Value::Object(fields) => open.extend(fields.values_mut()),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(())
    }
}
