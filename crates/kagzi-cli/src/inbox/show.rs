//! `kagzi inbox show`: one question, and what people were told about it.

use kagzi::inbox::{Inbox, Notice};
use serde::Serialize;

use super::find;
use super::view::QuestionView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::{table, time_text};

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    question: QuestionView,
    notices: Vec<NoticeView>,
    answer_with: String,
}

#[derive(Serialize)]
struct NoticeView {
    recipient: String,
    message: String,
    channel: String,
    state: String,
    attempts: u32,
    last_error: Option<String>,
}

impl From<Notice> for NoticeView {
    fn from(notice: Notice) -> NoticeView {
        NoticeView {
            recipient: notice.recipient,
            message: notice.message,
            channel: notice.channel,
            state: notice.state,
            attempts: notice.attempts,
            last_error: notice.last_error,
        }
    }
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let (question, notices) = inbox.question(find(inbox, &args.id).await?).await?;
    let answer_with = command(&question.id, question.question_type.name(), &question.options);
    let shown = Shown {
        question: question.into(),
        notices: notices.into_iter().map(NoticeView::from).collect(),
        answer_with,
    };
    match session.format {
        Format::Json => output::print_json(&shown),
        Format::Table => output::print(&as_text(&shown)),
    }
}

fn command(id: &str, kind: &str, options: &[kagzi::inbox::QuestionOption]) -> String {
    let answer = match kind {
        "approval" => "approve|reject".to_owned(),
        "input" => "--data JSON".to_owned(),
        "browser_takeover" => "--proof TEXT".to_owned(),
        _ => options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join("|"),
    };
    format!("kagzi inbox answer {id} {answer}")
}

fn as_text(shown: &Shown) -> String {
    let Shown { question, notices, answer_with } = shown;
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let pretty = |value: &Option<serde_json::Value>| {
        value.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok())
    };
    let now = time_text::now();
    let open = question.closed_at.is_none();
    let fields = [
        ("id", some(&question.id)),
        ("type", some(question.r#type)),
        ("state", some(question.state)),
        ("title", some(&question.title)),
        ("message", some(&question.message)),
        ("arguments", pretty(&question.arguments)),
        ("options", some(&question.options.join(", "))),
        ("schema", pretty(&question.schema)),
        ("details", pretty(&question.details)),
        ("open", question.browser_url.clone()),
        ("do there", question.browser_instructions.clone()),
        ("asked", some(&question.assignees.join(", "))),
        ("claimed by", question.claimed_by.clone()),
        ("votes", some(&question.votes.join("; "))),
        ("comments", some(&question.comments.join("; "))),
        ("answer", question.answer.clone()),
        ("answered by", question.answered_by.clone()),
        ("source", question.answer_source.clone()),
        ("cancelled", question.cancelled_because.clone()),
        ("run", some(&question.run_id)),
        ("step", some(&question.step)),
        ("due", question.expires_at.map(|at| time_text::absolute_and_relative(at, now))),
        ("answer with", some(answer_with).filter(|_| open)),
    ];
    let mut text = table::text(table::of_fields(fields));
    if !notices.is_empty() {
        let mut told = table::with_columns(&["TOLD", "WHAT", "HOW", "STATE", "TRIES", "ERROR"]);
        for notice in notices {
            told.add_row([
                notice.recipient.clone(),
                notice.message.clone(),
                notice.channel.clone(),
                notice.state.clone(),
                notice.attempts.to_string(),
                notice.last_error.clone().unwrap_or_default(),
            ]);
        }
        text.push('\n');
        text.push_str(&table::text(told));
    }
    text
}
