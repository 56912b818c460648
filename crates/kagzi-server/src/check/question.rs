//! Checks of what a run asks a person, and of what people answer.

use kagzi_model::{
    Name,
    intervention::{Ask, Browser, Choice, Escalation, InterventionKey, InterventionType, OnTimeout, Quorum},
};
use kagzi_proto::{sha256_hex, v1};
use serde_json::Value;
use tonic::Status;
use uuid::Uuid;

use super::{invalid, namespace, schema_fits};

/// Largest schema of an input, in bytes.
const SCHEMA_BYTES_MAX: usize = 16 * 1024;

/// A question as the model has it.
pub fn question(asked: v1::Question) -> Result<Ask, Status> {
    let kind = InterventionType::from_number(asked.r#type.into());
    let Some(kind) = kind.filter(|kind| *kind != InterventionType::ErrorResolution) else {
        return Err(invalid("ask.type", asked.r#type, "it must be an InterventionType, 1 to 4"));
    };
    if asked.four_eyes {
        let rule = "people do not prove who they are here, so nobody could tell two pairs of eyes apart";
        return Err(invalid("ask.four_eyes", true, rule));
    }
    if asked.schema.len() > SCHEMA_BYTES_MAX {
        let rule = format!("it must have at most {SCHEMA_BYTES_MAX} bytes");
        return Err(invalid("ask.schema", asked.schema.len(), rule));
    }
    let votes = |field: &str, count: u32| match u16::try_from(count) {
        Ok(0) => Ok(1),
        Ok(count) => Ok(count),
        Err(_) => Err(invalid(field, count, "so many people never agree")),
    };
    let quorum = Quorum {
        approve: votes("ask.approvals", asked.approvals)?,
        reject: votes("ask.rejections", asked.rejections)?,
    };
    let arguments_hash = match asked.arguments.as_str() {
        "" => Name::empty(),
        shown => Name::from(sha256_hex(shown)),
    };
    let browser = (!asked.browser_url.is_empty())
        .then_some(Browser { url: asked.browser_url, instructions: asked.browser_instructions });
    let on_timeout = match asked.on_timeout.as_str() {
        "" => OnTimeout::Standard,
        "fail" => OnTimeout::Fail,
        option => OnTimeout::Choose(Name::from(option)),
    };
    let choice = |option: v1::QuestionOption| Choice {
        label: if option.label.is_empty() { option.id.clone() } else { option.label },
        id: Name::from(option.id),
        description: option.description,
        default: option.default,
        destructive: option.destructive,
    };
    let step = |step: v1::QuestionEscalation| Escalation { after_ms: step.after_ms, to: Name::from(step.to) };
    let ask = Ask {
        message: asked.message,
        details: json("ask.details", &asked.details)?,
        options: asked.options.into_iter().map(choice).collect(),
        schema: json("ask.schema", &asked.schema)?,
        browser,
        arguments: json("ask.arguments", &asked.arguments)?,
        arguments_hash,
        editable: asked.editable,
        assignees: asked.assignees.into_iter().map(Name::from).collect(),
        quorum,
        priority: u8::try_from(asked.priority.min(9)).unwrap_or(9),
        timeout_ms: asked.timeout_ms,
        on_timeout,
        escalation: asked.escalation.into_iter().map(step).collect(),
        remind_ms: asked.remind_ms,
        ..Ask::new(kind, asked.title)
    };
    if let Some(schema) = &ask.schema {
        schema_fits(schema)?;
    }
    ask.check().map_err(|error| invalid(&format!("ask.{}", error.field), "", &error.rule))?;
    Ok(ask)
}

/// JSON that may be left out.
pub fn json(field: &str, text: &str) -> Result<Option<Value>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|error| invalid(field, text, format!("no JSON: {error}")))
}

/// Names a question.
pub fn intervention_key(namespace_id: &str, id: &str) -> Result<InterventionKey, Status> {
    let wrong = |_| invalid("intervention_id", id, "it must be the id of a question (a UUID)");
    Ok(InterventionKey { namespace: namespace(namespace_id)?, id: Uuid::try_parse(id).map_err(wrong)? })
}
