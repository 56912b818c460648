//! Everything that the server says, decoded where it arrives: an assigned run, a run, a step attempt, a line
//! of history.

use kagzi_proto::v1::{self, Assign, JournalEntry, RunEvent, StepAttempt, WorkflowRun};
use serde_json::Value;

use super::{CodecError, Codecs};

/// The content type of what somebody sent and no codec here could decode; it holds the reason.
pub(crate) const UNDECODABLE: &str = "application/vnd.kagzi.undecodable";

impl Codecs {
    /// Decodes all that a run begins with. The error says what could not be decoded.
    pub(crate) fn decode_assign(&self, assign: &mut Assign) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        if let Some(input) = assign.input.take() {
            let decoded = self.decode_input(input);
            assign.input =
                Some(decoded.map_err(|error| format!("the run's input cannot be decoded: {error}"))?);
        }
        for entry in &mut assign.journal {
            self.decode_entry(entry).map_err(|error| {
                let path = entry.step.as_ref().map_or("", |step| step.path.as_str());
                format!("what was recorded of step '{path}' cannot be decoded: {error}")
            })?;
        }
        Ok(())
    }

    fn decode_entry(&self, entry: &mut JournalEntry) -> Result<(), CodecError> {
        // What strangers send is an error for the code that waits for it, and no reason to pause the run.
        if !entry.signal_id.is_empty() {
            let signal = entry.result.take().map(|signal| self.decode_signal(signal));
            entry.result = signal;
            if let Some(failure) = &mut entry.failure
                && let Err(error) = self.decode_failure(failure)
            {
                tracing::debug!(%error, "a failure that somebody sent is shown as it came");
            }
            return Ok(());
        }
        self.decode_in_place(&mut entry.result)?;
        self.decode_in_place(&mut entry.progress)?;
        entry.failure.as_mut().map_or(Ok(()), |failure| self.decode_failure(failure))
    }

    /// Decodes what somebody sent. What cannot be decoded becomes the reason, in a payload of a type that no
    /// value has.
    pub(crate) fn decode_signal(&self, signal: v1::Payload) -> v1::Payload {
        self.decode(signal).unwrap_or_else(|error| v1::Payload {
            data: error.to_string().into(),
            content_type: UNDECODABLE.to_owned(),
        })
    }

    /// Decodes a run as clients see it.
    pub(crate) fn decode_run(&self, run: &mut WorkflowRun) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        if let Some(input) = run.input.take() {
            run.input = Some(self.decode_input(input)?);
        }
        self.decode_in_place(&mut run.output)?;
        run.error.as_mut().map_or(Ok(()), |error| self.decode_failure(error))
    }

    /// Decodes what a step did.
    pub(crate) fn decode_attempt(&self, attempt: &mut StepAttempt) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        self.decode_in_place(&mut attempt.output)?;
        attempt.error.as_mut().map_or(Ok(()), |error| self.decode_failure(error))
    }

    /// Decodes a line of history, the messages inside its details too.
    pub(crate) fn decode_event(&self, event: &mut RunEvent) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        self.decode_in_place(&mut event.payload)?;
        if let Ok(mut details) = serde_json::from_str::<Value>(&event.detail_json) {
            self.decode_texts(&mut details)?;
            event.detail_json = details.to_string();
        }
        Ok(())
    }

    fn decode_texts(&self, value: &mut Value) -> Result<(), CodecError> {
        match value {
            Value::String(text) => *text = self.decode_text(std::mem::take(text))?,
            Value::Array(values) => values.iter_mut().try_for_each(|value| self.decode_texts(value))?,
            Value::Object(fields) => fields.values_mut().try_for_each(|value| self.decode_texts(value))?,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
}
