//! What somebody answers, and what the run is told.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Ask, InterventionType};
use crate::{Failure, Name, Payload, Timestamp, rfc3339};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To a decision: the option.
    Option(Name),
    /// To an input: the data.
    Data(Value),
    /// To an approval: yes, perhaps with other arguments.
    Approved { edited: Option<Value> },
    /// To an approval: no.
    Rejected,
    /// To a takeover: it is done; whatever proves it.
    Completed { proof: String },
    /// To a failure.
    Resolution(Resolution),
}

/// What becomes of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    Retry,
    RetryWithNewKey,
    Skip { output: Value },
    Use { alternative: Name },
    Rollback,
    Fail,
}

impl Answer {
    /// In one word or two.
    pub fn in_words(&self) -> String {
        match self {
            Answer::Option(id) => id.to_string(),
            Answer::Data(_) => "data".into(),
            Answer::Approved { edited: None } => "approved".into(),
            Answer::Approved { edited: Some(_) } => "approved with other arguments".into(),
            Answer::Rejected => "rejected".into(),
            Answer::Completed { .. } => "completed".into(),
            Answer::Resolution(Resolution::Retry) => "retry".into(),
            Answer::Resolution(Resolution::RetryWithNewKey) => "retry with a new key".into(),
            Answer::Resolution(Resolution::Skip { .. }) => "skip".into(),
            Answer::Resolution(Resolution::Use { alternative }) => format!("use {alternative}"),
            Answer::Resolution(Resolution::Rollback) => "roll back".into(),
            Answer::Resolution(Resolution::Fail) => "fail".into(),
        }
    }

    /// Whether this is an answer to this question. Data is compared with the schema by the server, before.
    pub(super) fn fits(&self, ask: &Ask) -> Result<(), String> {
        let wants = match ask.kind {
            InterventionType::Decision => "the id of one of its options",
            InterventionType::Input => "data",
            InterventionType::Approval => "approve or reject",
            InterventionType::BrowserTakeover => "that it is completed",
            InterventionType::ErrorResolution => "a resolution",
        };
        match (ask.kind, self) {
            (InterventionType::Decision, Answer::Option(id)) => match ask.option(id) {
                Some(_) => Ok(()),
                None => {
                    let ids: Vec<&str> = ask.options.iter().map(|choice| &*choice.id).collect();
                    Err(format!("there is no option '{id}'; there are: {}", ids.join(", ")))
                }
            },
            (InterventionType::Approval, Answer::Approved { edited: Some(_) }) if !ask.editable => {
                Err("its arguments may not be changed; approve or reject them as they are".into())
            }
            (InterventionType::Input, Answer::Data(_))
            | (InterventionType::Approval, Answer::Approved { .. } | Answer::Rejected)
            | (InterventionType::BrowserTakeover, Answer::Completed { .. })
            | (InterventionType::ErrorResolution, Answer::Resolution(_)) => Ok(()),
            (
                InterventionType::Decision
                | InterventionType::Input
                | InterventionType::Approval
                | InterventionType::BrowserTakeover
                | InterventionType::ErrorResolution,
                Answer::Option(_)
                | Answer::Data(_)
                | Answer::Approved { .. }
                | Answer::Rejected
                | Answer::Completed { .. }
                | Answer::Resolution(_),
            ) => Err(format!("this is a question for {wants}, and the answer is: {}", self.in_words())),
        }
    }

    /// As the code reads it.
    fn to_json(&self) -> Value {
        match self {
            Answer::Option(id) => json!({ "option": id }),
            Answer::Data(data) => json!({ "data": data }),
            Answer::Approved { edited: None } => json!({ "approved": true }),
            Answer::Approved { edited: Some(edited) } => json!({ "approved": true, "edited": edited }),
            Answer::Rejected => json!({ "approved": false }),
            Answer::Completed { proof } => json!({ "proof": proof }),
            Answer::Resolution(resolution) => json!({ "resolution": resolution }),
        }
    }
}

/// On whose word a question was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A person's.
    User,
    /// Nobody's: its time was over.
    TimeoutDefault,
    /// A person's who was asked only because others did not answer.
    Escalation,
    /// An operator's, who is not asked.
    Operator,
}

impl Source {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Source::User => "user",
            Source::TimeoutDefault => "timeout_default",
            Source::Escalation => "escalation",
            Source::Operator => "operator",
        }
    }
}

/// One person's vote. A second one of the same person replaces the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub by: Name,
    pub at: Timestamp,
    /// The caller's own name for it: the same again is the same vote.
    pub id: Name,
    pub answer: Answer,
    #[serde(default)]
    pub note: String,
    /// It took the place of somebody who had claimed the question.
    #[serde(default)]
    pub forced: bool,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Empty when nobody did.
    pub by: Name,
    pub source: Source,
    pub at: Timestamp,
    /// None: its time is over, and that means failure.
    pub answer: Option<Answer>,
    #[serde(default)]
    pub note: String,
}

impl Answered {
    /// For those who come too late.
    pub fn in_words(&self) -> String {
        let answer = self.answer.as_ref().map_or_else(|| "nothing".to_owned(), Answer::in_words);
        match self.source {
            Source::TimeoutDefault => format!("its time was over, which means: {answer}"),
            Source::User | Source::Escalation | Source::Operator => {
                format!("{} answered at {}: {answer}", self.by, rfc3339(self.at))
            }
        }
    }
}

/// What the run is told: a value or a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct Tell {
    pub payload: Payload,
    pub failure: Option<Failure>,
}

impl Tell {
    /// The answer, with who gave it and why it counts.
    pub fn answer(question: Uuid, arguments_hash: &Name, answered: &Answered) -> Option<Tell> {
        let mut value = answered.answer.as_ref()?.to_json();
        let about = json!({
            "question": question,
            "by": answered.by,
            "source": answered.source,
            "at": rfc3339(answered.at),
            "note": answered.note,
            "arguments_sha256": arguments_hash,
        });
        if let (Value::Object(value), Value::Object(about)) = (&mut value, about) {
            value.extend(about);
        }
        let payload = Payload::new(value.to_string().into_bytes());
        Some(Tell { payload, failure: None })
    }

    /// There is no answer.
    pub fn failure(code: &str, why: &str) -> Tell {
        Tell { payload: Payload::new(&b""[..]), failure: Some(Failure::new(code, why).non_retryable()) }
    }
}
