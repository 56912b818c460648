//! `kagzi inbox`: your questions, the most urgent first.

use jiff::Timestamp;
use kagzi::inbox::{Inbox, QuestionState};
use serde::Serialize;

use super::view::QuestionView;
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::run::find;
use crate::session::Session;
use crate::{table, time_text};

// Without a group of its own: it stands among the arguments of `kagzi inbox` itself.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Everybody's, and not only yours.
    #[arg(long)]
    all: bool,
    /// Those that are closed.
    #[arg(long)]
    closed: bool,
    /// Those of one run, whomever they ask: a run id, a unique prefix of one, or a business id.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Page {
    questions: Vec<QuestionView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let paging = args.paging;
    let mut list = inbox.questions().page_size(paging.limit);
    if let Some(run) = &args.run {
        let handle = find::handle(&session.client().await?, run).await?;
        list = list.run(handle.run_id());
    } else if !args.all {
        list = list.mine();
    }
    if args.closed {
        for state in [QuestionState::Responded, QuestionState::Expired, QuestionState::Cancelled] {
            list = list.state(state);
        }
    }
    let list = if paging.total { list.with_total() } else { list };
    let mut found = list.page(paging.token()).await?;
    if !args.all {
        let person = inbox.person().to_owned();
        found.rows.retain(|question| !question.snoozed_by.contains(&person));
    }
    let (questions, foot) = Foot::split(found, &paging);
    let page = Page { questions, foot };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table => {
            output::print(&as_table(&page.questions, time_text::now()))?;
            page.foot.note();
            Ok(())
        }
    }
}

fn as_table(questions: &[QuestionView], now: Timestamp) -> String {
    let columns = ["ID", "TYPE", "STATE", "TITLE", "RUN", "DUE", "ASKED", "CLAIMED"];
    let mut table = table::with_columns(&columns);
    for question in questions {
        let due = question.expires_at.map_or("-".to_owned(), |at| time_text::relative(at, now));
        let asked =
            if question.assignees.is_empty() { "anybody".to_owned() } else { question.assignees.join(", ") };
        table.add_row([
            question.id.clone(),
            question.r#type.to_owned(),
            question.state.to_owned(),
            question.title.clone(),
            question.run_id.clone(),
            due,
            asked,
            question.claimed_by.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table::text(table)
}
