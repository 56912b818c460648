//! `kagzi inbox answer`: approve, reject, choose, or give data.

use kagzi::inbox::{Answered, Inbox, QuestionType};
use serde::Serialize;

use super::find;
use super::view::QuestionView;
use crate::input;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
    /// approve, reject, or the id of an option.
    #[arg(conflicts_with_all = ["data", "proof"])]
    answer: Option<String>,
    /// The data that an input asks for: JSON or @FILE.
    #[arg(long, value_name = "JSON", conflicts_with = "proof")]
    data: Option<String>,
    /// What proves that something was done by hand.
    #[arg(long, value_name = "TEXT")]
    proof: Option<String>,
    /// With approve: other arguments, where the question allows it: JSON or @FILE.
    #[arg(long, value_name = "JSON", requires = "answer")]
    edited: Option<String>,
    /// For the others.
    #[arg(long, default_value = "", hide_default_value = true)]
    note: String,
    /// Also where somebody else has claimed it, or you are not asked. It is written down.
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Shown {
    decided: bool,
    votes: u32,
    votes_needed: u32,
    question: QuestionView,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let id = find(inbox, &args.id).await?;
    let json = |text: &str| -> anyhow::Result<serde_json::Value> {
        Ok(serde_json::from_slice(&input::read(text)?)?)
    };
    let note = args.note.as_str();
    let answered = match (&args.answer, &args.data, &args.proof) {
        (None, Some(data), None) if args.force => inbox.forced().give(id, &json(data)?, note).await?,
        (None, Some(data), None) => inbox.give(id, &json(data)?, note).await?,
        (None, None, Some(proof)) => inbox.complete(id, proof).await?,
        (Some(answer), None, None) => {
            let (question, _) = inbox.question(&id).await?;
            let approval = question.question_type == QuestionType::Approval;
            match (answer.as_str(), &args.edited) {
                ("approve", Some(edited)) if approval => {
                    inbox.approve_edited(id, &json(edited)?, note).await?
                }
                (answer @ ("approve" | "reject"), None) if approval && args.force => {
                    inbox.forced().approve(id, answer == "approve", note).await?
                }
                ("approve", None) if approval => inbox.approve(id, note).await?,
                ("reject", None) if approval => inbox.reject(id, note).await?,
                (_, _) if approval => anyhow::bail!("this is an approval: answer approve or reject"),
                (option, _) if args.force => inbox.forced().choose(id, option, note).await?,
                (option, _) => inbox.choose(id, option, note).await?,
            }
        }
        _ => anyhow::bail!("say what to answer: approve, reject, an option, --data JSON or --proof TEXT"),
    };
    print(answered, session)
}

fn print(answered: Answered, session: &Session) -> anyhow::Result<()> {
    let Answered { question, decided, votes: (votes, votes_needed), .. } = answered;
    match session.format {
        Format::Json => {
            let question = QuestionView::from(question);
            output::print_json(&Shown { decided, votes, votes_needed, question })
        }
        Format::Table => {
            let said = question.answer.clone().unwrap_or_default();
            let run = &question.run_id;
            output::note(&match decided {
                true => format!("'{}' is answered: {said}; run {run} goes on", question.title),
                false => format!("recorded: {votes} of {votes_needed} votes for '{}'", question.title),
            });
            Ok(())
        }
    }
}
