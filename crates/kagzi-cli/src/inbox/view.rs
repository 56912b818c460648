//! A question as the command shows it.

use jiff::Timestamp;
use kagzi::inbox::Question;
use serde::Serialize;

use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;

#[derive(Debug, Serialize)]
pub struct QuestionView {
    pub id: String,
    pub r#type: &'static str,
    pub state: &'static str,
    pub title: String,
    pub message: String,
    pub run_id: String,
    pub step: String,
    pub workflow_type: String,
    pub assignees: Vec<String>,
    pub claimed_by: Option<String>,
    pub options: Vec<String>,
    pub arguments: Option<serde_json::Value>,
    pub schema: Option<serde_json::Value>,
    pub details: Option<serde_json::Value>,
    pub browser_url: Option<String>,
    pub browser_instructions: Option<String>,
    pub approvals_needed: u32,
    pub votes: Vec<String>,
    pub comments: Vec<String>,
    pub answer: Option<String>,
    pub answered_by: Option<String>,
    pub answer_source: Option<String>,
    pub cancelled_because: Option<String>,
    pub created_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub version: u64,
}

impl From<Question> for QuestionView {
    fn from(question: Question) -> QuestionView {
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        let votes = question.votes.iter().map(|vote| said(&vote.by, &vote.answer, &vote.note));
        let comments = question.comments.iter().map(|comment| said(&comment.by, &comment.text, ""));
        QuestionView {
            votes: votes.collect(),
            comments: comments.collect(),
            id: question.id,
            r#type: question.question_type.name(),
            state: question.state.name(),
            title: question.title,
            message: question.message,
            run_id: question.run_id,
            step: question.step,
            workflow_type: question.workflow_type,
            assignees: question.assignees,
            claimed_by: question.claimed_by,
            options: question.options.into_iter().map(|option| option.id).collect(),
            arguments: json(question.arguments),
            schema: json(question.schema),
            details: json(question.details),
            browser_url: question.browser_url,
            browser_instructions: question.browser_instructions,
            approvals_needed: question.approvals,
            answer: question.answer,
            answered_by: question.answered_by,
            answer_source: question.answer_source,
            cancelled_because: question.cancelled_because,
            created_at: time_text::of(Some(question.created_at)),
            expires_at: time_text::of(question.expires_at),
            closed_at: time_text::of(question.closed_at),
            version: question.version,
        }
    }
}

fn said(by: &str, what: &str, note: &str) -> String {
    if note.is_empty() { format!("{by}: {what}") } else { format!("{by}: {what} ({note})") }
}

/// Says what was done, or shows the question as it is now.
pub fn print(question: Question, done: &str, session: &Session) -> anyhow::Result<()> {
    match session.format {
        Format::Json => output::print_json(&QuestionView::from(question)),
        Format::Table => {
            output::note(&format!("question {} ('{}') {done}", question.id, question.title));
            Ok(())
        }
    }
}
