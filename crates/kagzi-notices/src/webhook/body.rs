//! What is posted: one shape that chat rooms, on-call services and programs of one's own all take.
//!
//! Slack and its relatives read `text`. PagerDuty and its relatives read `event_action`, `dedup_key` and
//! `payload`. Everybody else reads `kagzi`, which has every fact by its name.

use kagzi_model::rfc3339;
use serde_json::{Value, json};

use crate::{Occasion, Parcel, Severity, clean, facts::severity_name, occasion::is_over};

/// The body of a message. `routing_key` is what on-call services know their customers by.
pub fn body(parcel: &Parcel, routing_key: Option<&str>) -> Value {
    let Parcel { occasion, contact, facts, message, .. } = parcel;
    let line = |text: &str| match clean::line(text, 200) {
        empty if empty.is_empty() => Value::Null,
        line => Value::from(line),
    };
    let due = facts.due_at.map_or(Value::Null, |at| Value::from(rfc3339(at)));
    let told = json!({
        "notice": parcel.wire_id(),
        "occasion": occasion.name(),
        "recipient": line(&contact.name),
        "namespace": line(&facts.namespace),
        "question": line(&facts.question),
        "type": line(&facts.kind),
        "title": line(&facts.title),
        "severity": facts.severity.map(severity_name),
        "workflow_type": line(&facts.workflow_type),
        "run": line(&facts.run),
        "step": line(&facts.step),
        "due_at": due,
        "by": line(&facts.by),
        "reason": line(&facts.reason),
    });
    let mut body = json!({
        "text": in_chat(&format!("{}\n{}", message.subject, message.text)),
        "event_action": action(*occasion),
        // The question, not the message: what a second message tells belongs to the same alarm.
        "dedup_key": clean::line(&facts.question, 200),
        "payload": {
            "summary": message.subject,
            "source": format!("kagzi/{}", clean::line(&facts.namespace, 200)),
            "severity": alarm(facts.severity),
            "custom_details": told.clone(),
        },
        "kagzi": told,
    });
    if let Some(key) = routing_key {
        body["routing_key"] = Value::from(key);
    }
    body
}

/// Chat rooms take `<!channel>` and `<https://…|text>` for more than text, and these three say otherwise.
fn in_chat(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn action(occasion: Occasion) -> &'static str {
    if is_over(occasion) { "resolve" } else { "trigger" }
}

/// On-call services have their own words for how bad it is.
fn alarm(severity: Option<Severity>) -> &'static str {
    match severity {
        None => "info",
        Some(Severity::Low) => "warning",
        Some(Severity::High) => "error",
        Some(Severity::Critical) => "critical",
    }
}
