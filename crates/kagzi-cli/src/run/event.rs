use crate::payload::{PayloadView, readable_json};
use crate::table;
use crate::time_text;
use jiff::Timestamp;
use kagzi::history::Event;
use kagzi_model::EventKind;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One line of a run's history as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct EventView {
    pub sequence: u64,
    pub at: Option<Timestamp>,
    pub kind: String,
    pub step: Option<String>,
    /// Null for an event that is not about an attempt.
    pub attempt: Option<u32>,
    pub detail: Option<Box<RawValue>>,
    pub payload: Option<PayloadView>,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        EventView {
            sequence: event.sequence,
            at: time_text::of(Some(event.at)),
            kind: event.kind,
            step: event.step,
            attempt: Some(event.attempt).filter(|attempt| *attempt > 0),
            detail: detail(event.detail),
            payload: PayloadView::of(event.payload),
        }
    }
}

/// What the event says beyond the columns that it has anyway.
fn detail(detail: Value) -> Option<Box<RawValue>> {
    let Value::Object(mut fields) = detail else { return None };
    for shown in ["event", "step", "attempt"] {
        fields.remove(shown);
    }
    serde_json::value::to_raw_value(&fields).ok()
}

pub fn as_table(events: &[EventView], now: Timestamp) -> String {
    let mut table = table::with_columns(&["#", "AT", "EVENT", "STEP", "ATTEMPT", "DETAIL"]);
    for event in events {
        table.add_row([
            event.sequence.to_string(),
            event.at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now)),
            event.kind.clone(),
            event.step.clone().unwrap_or("-".into()),
            event.attempt.map_or("-".into(), |attempt| attempt.to_string()),
            event.said(),
        ]);
    }
    table::text(table)
}

impl EventView {
    /// The event in one line, for those who watch.
    pub fn line(&self) -> String {
        let at = self.at.map_or("-".into(), |at| at.to_string());
        let step = self.step.as_ref().map(|step| match self.attempt {
            Some(attempt) => format!(" {step} (attempt {attempt})"),
            None => format!(" {step}"),
        });
        let said = Some(self.said()).filter(|said| !said.is_empty()).map(|said| format!("  {said}"));
        let (step, said) = (step.unwrap_or_default(), said.unwrap_or_default());
        format!("{at}  {:>4} {}{step}{said}", self.sequence, self.kind)
    }

    /// The event as the server has it, without its payload: its columns and its details are one object there.
    /// What this program does not know, because the server is newer, is of an unknown kind. None without a
    /// time.
    pub fn recorded(&self) -> Option<kagzi_model::Event> {
        let detail = self.detail.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        let mut fields: Map<String, Value> = detail.unwrap_or_default();
        fields.insert("event".into(), self.kind.clone().into());
        fields.insert("attempt".into(), self.attempt.unwrap_or(0).into());
        if let Some(step) = &self.step {
            fields.insert("step".into(), step.clone().into());
        }
        let kind = serde_json::from_value(Value::Object(fields)).unwrap_or_else(|_| EventKind::Unknown {
            number: 0,
            name: self.kind.as_str().into(),
            record: Box::default(),
        });
        let at = kagzi_model::Timestamp(self.at?.as_microsecond());
        Some(kagzi_model::Event { seq: self.sequence, at, kind, payload: None })
    }

    fn said(&self) -> String {
        let detail =
            self.detail.as_ref().map(|detail| readable_json(detail.get())).filter(|json| json != "{}");
        let payload = self.payload.as_ref().map(PayloadView::text);
        [detail, payload].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::view::tests::sample_now;
    use crate::{output, payload};

    fn sample_events() -> Vec<EventView> {
        let at = |seconds| std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let mut started = Event::default();
        (started.sequence, started.at, started.kind) = (1, at(1_794_744_000), "run_started".into());
        started.detail = serde_json::json!({ "task_queue": "orders" });
        let mut recorded = Event::default();
        (recorded.sequence, recorded.at, recorded.kind) = (2, at(1_794_744_003), "step_recorded".into());
        (recorded.step, recorded.attempt) = (Some("reserve".into()), 1);
        recorded.payload = Some(payload::json(r#"{"reservation":"R-1"}"#));
        vec![started.into(), recorded.into()]
    }

    #[test]
    fn a_detail_does_not_repeat_the_columns() {
        let said = detail(serde_json::json!({
            "event": "step_completed", "step": "reserve", "position": 0, "attempt": 1
        }));

        assert_eq!(said.unwrap().get(), r#"{"position":0}"#);
    }

    #[test]
    fn events_as_a_table() {
        insta::assert_snapshot!(as_table(&sample_events(), sample_now()));
    }

    #[test]
    fn events_as_json() {
        insta::assert_snapshot!(output::json(&sample_events()));
    }
}
