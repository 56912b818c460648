//! A question as whoever answers it sees it.

use std::fmt;
use std::time::SystemTime;

use kagzi_proto::v1;

use crate::absent::{always, at, text};

/// Where a question stands.
///
/// ```
/// use kagzi::inbox::{QuestionState, QuestionType};
///
/// assert!(QuestionState::Queued.is_open() && !QuestionState::Expired.is_open());
/// assert_eq!((QuestionState::Pending.name(), QuestionType::Approval.name()), ("pending", "approval"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuestionState {
    /// Everybody who is named has ten open ones; its clock does not run.
    Queued,
    /// Somebody may answer.
    Pending,
    /// Somebody has answered.
    Responded,
    /// Its time was over.
    Expired,
    /// Nobody wants to know any more.
    Cancelled,
    /// Something that only a newer server knows.
    Unknown,
}

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuestionType {
    /// One of several options.
    Decision,
    /// Data of a given form.
    Input,
    /// Yes or no to what is shown.
    Approval,
    /// Something done by hand in a browser.
    BrowserTakeover,
    /// What becomes of a failure.
    ErrorResolution,
    /// Something that only a newer server knows.
    Unknown,
}

impl QuestionState {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            QuestionState::Queued => "queued",
            QuestionState::Pending => "pending",
            QuestionState::Responded => "responded",
            QuestionState::Expired => "expired",
            QuestionState::Cancelled => "cancelled",
            QuestionState::Unknown => "unknown",
        }
    }

    /// Somebody may still answer.
    pub fn is_open(self) -> bool {
        matches!(self, QuestionState::Queued | QuestionState::Pending)
    }

    fn from_wire(number: i32) -> QuestionState {
        match v1::InterventionState::try_from(number) {
            Ok(v1::InterventionState::Queued) => QuestionState::Queued,
            Ok(v1::InterventionState::Pending) => QuestionState::Pending,
            Ok(v1::InterventionState::Responded) => QuestionState::Responded,
            Ok(v1::InterventionState::Expired) => QuestionState::Expired,
            Ok(v1::InterventionState::Cancelled) => QuestionState::Cancelled,
            Ok(v1::InterventionState::Unspecified) | Err(_) => QuestionState::Unknown,
        }
    }

    pub(crate) fn to_wire(self) -> v1::InterventionState {
        match self {
            QuestionState::Queued => v1::InterventionState::Queued,
            QuestionState::Pending => v1::InterventionState::Pending,
            QuestionState::Responded => v1::InterventionState::Responded,
            QuestionState::Expired => v1::InterventionState::Expired,
            QuestionState::Cancelled => v1::InterventionState::Cancelled,
            QuestionState::Unknown => v1::InterventionState::Unspecified,
        }
    }
}

impl QuestionType {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            QuestionType::Decision => "decision",
            QuestionType::Input => "input",
            QuestionType::Approval => "approval",
            QuestionType::BrowserTakeover => "browser_takeover",
            QuestionType::ErrorResolution => "error_resolution",
            QuestionType::Unknown => "unknown",
        }
    }

    fn from_wire(number: i32) -> QuestionType {
        match v1::InterventionType::try_from(number) {
            Ok(v1::InterventionType::Decision) => QuestionType::Decision,
            Ok(v1::InterventionType::Input) => QuestionType::Input,
            Ok(v1::InterventionType::Approval) => QuestionType::Approval,
            Ok(v1::InterventionType::BrowserTakeover) => QuestionType::BrowserTakeover,
            Ok(v1::InterventionType::ErrorResolution) => QuestionType::ErrorResolution,
            Ok(v1::InterventionType::Unspecified) | Err(_) => QuestionType::Unknown,
        }
    }
}

impl fmt::Display for QuestionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for QuestionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One of the answers to a decision.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuestionOption {
    /// What is answered.
    pub id: String,
    /// What people read.
    pub label: String,
    /// More of it; may be empty.
    pub description: String,
    /// It is taken when nobody decides in time.
    pub default: bool,
    /// Worth a second look.
    pub destructive: bool,
}

/// One person's vote.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Vote {
    /// Whose.
    pub by: String,
    /// When.
    pub at: SystemTime,
    /// In a word or two.
    pub answer: String,
    /// What was said with it.
    pub note: String,
}

/// What somebody said about it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Comment {
    /// Who.
    pub by: String,
    /// When.
    pub at: SystemTime,
    /// What.
    pub text: String,
}

/// What a person was told, or is to be told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Notice {
    /// The same on every try.
    pub id: String,
    /// `in_app`, `email`, `webhook` or `push`.
    pub channel: String,
    /// Who.
    pub recipient: String,
    /// `asked`, `reminder`, `escalated` or `no_longer_needed`.
    pub message: String,
    /// `pending`, `sent`, `retrying`, `given_up` or `suppressed`.
    pub state: String,
    /// Tries so far.
    pub attempts: u32,
    /// What went wrong the last time.
    pub last_error: Option<String>,
    /// When it arrived, as far as we know.
    pub sent_at: Option<SystemTime>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Its id.
    pub id: String,
    /// Rises with every change.
    pub version: u64,
    /// Where it stands.
    pub state: QuestionState,
    /// What kind of answer is wanted.
    pub question_type: QuestionType,
    /// One line.
    pub title: String,
    /// What to read before answering; may be empty.
    pub message: String,
    /// More, as JSON.
    pub details: Option<String>,
    /// Of a decision.
    pub options: Vec<QuestionOption>,
    /// Of an input: JSON Schema.
    pub schema: Option<String>,
    /// Of a takeover.
    pub browser_url: Option<String>,
    /// Of a takeover.
    pub browser_instructions: Option<String>,
    /// Of an approval: JSON, exactly what is approved.
    pub arguments: Option<String>,
    /// Whoever approves may change the arguments.
    pub editable: bool,
    /// How many must approve.
    pub approvals: u32,
    /// Higher is more urgent.
    pub priority: u32,
    /// The run that waits for it.
    pub run_id: String,
    /// The path of its step.
    pub step: String,
    /// What kind of run.
    pub workflow_type: String,
    /// Who is asked now; nobody = everybody.
    pub assignees: Vec<String>,
    /// Votes so far.
    pub votes: Vec<Vote>,
    /// Who works on it.
    pub claimed_by: Option<String>,
    /// What was said about it.
    pub comments: Vec<Comment>,
    /// Who does not want to see it now.
    pub snoozed_by: Vec<String>,
    /// Escalations that were done.
    pub escalations: u32,
    /// Who answered; none also where its time was over.
    pub answered_by: Option<String>,
    /// `user`, `timeout_default`, `escalation` or `operator`.
    pub answer_source: Option<String>,
    /// The answer, in a word or two.
    pub answer: Option<String>,
    /// What was said with the answer.
    pub note: Option<String>,
    /// Why it was cancelled.
    pub cancelled_because: Option<String>,
    /// When it was asked.
    pub created_at: SystemTime,
    /// When its time is over; none while it is queued.
    pub expires_at: Option<SystemTime>,
    /// When it was closed.
    pub closed_at: Option<SystemTime>,
}

impl Question {
    pub(crate) fn from_proto(row: v1::Intervention) -> Question {
        let asked = row.question.unwrap_or_default();
        let option = |option: v1::QuestionOption| QuestionOption {
            id: option.id,
            label: option.label,
            description: option.description,
            default: option.default,
            destructive: option.destructive,
        };
        let vote = |vote: v1::InterventionVote| Vote {
            by: vote.by,
            at: always(vote.at),
            answer: vote.answer,
            note: vote.note,
        };
        let comment = |comment: v1::InterventionComment| Comment {
            by: comment.by,
            at: always(comment.at),
            text: comment.text,
        };
        Question {
            id: row.intervention_id,
            version: row.version,
            state: QuestionState::from_wire(row.state),
            question_type: QuestionType::from_wire(asked.r#type),
            title: asked.title,
            message: asked.message,
            details: text(asked.details),
            options: asked.options.into_iter().map(option).collect(),
            schema: text(asked.schema),
            browser_url: text(asked.browser_url),
            browser_instructions: text(asked.browser_instructions),
            arguments: text(asked.arguments),
            editable: asked.editable,
            approvals: asked.approvals,
            priority: asked.priority,
            run_id: row.run_id,
            step: row.step,
            workflow_type: row.workflow_type,
            assignees: row.assignees,
            votes: row.votes.into_iter().map(vote).collect(),
            claimed_by: text(row.claimed_by),
            comments: row.comments.into_iter().map(comment).collect(),
            snoozed_by: row.snoozed_by,
            escalations: row.escalations,
            answered_by: text(row.answered_by),
            answer_source: text(row.answer_source),
            answer: text(row.answer),
            note: text(row.note),
            cancelled_because: text(row.cancelled_because),
            created_at: always(row.created_at),
            expires_at: at(row.expires_at),
            closed_at: at(row.closed_at),
        }
    }
}

impl Notice {
    pub(crate) fn from_proto(notice: v1::Notice) -> Notice {
        Notice {
            id: notice.notice_id,
            channel: notice.channel,
            recipient: notice.recipient,
            message: notice.message,
            state: notice.state,
            attempts: notice.attempts,
            last_error: text(notice.last_error),
            sent_at: at(notice.sent_at),
        }
    }
}
