use super::view::ScheduleView;
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Only schedules that start this workflow type.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only paused schedules (true), or only those that are not (false).
    #[arg(long)]
    paused: Option<bool>,
    /// Only schedules whose runs are for this user.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Page {
    schedules: Vec<ScheduleView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let paging = args.paging;
    let schedules = session.client().await?.schedules().page_size(paging.limit);
    let schedules = schedules.workflow_type(args.workflow_type.unwrap_or_default());
    let schedules = schedules.user_id(args.user.unwrap_or_default());
    let schedules = if paging.total { schedules.with_total() } else { schedules };
    let schedules = if let Some(paused) = args.paused { schedules.paused(paused) } else { schedules };
    let (schedules, foot) = Foot::split(schedules.page(paging.token()).await?, &paging);
    let page = Page { schedules, foot };
    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table if page.schedules.is_empty() => {
            output::note("no schedules");
            page.foot.note();
            Ok(())
        }
        Format::Table => {
            output::print(&as_table(&page.schedules, time_text::now()))?;
            page.foot.note();
            Ok(())
        }
    }
}

fn as_table(schedules: &[ScheduleView], now: Timestamp) -> String {
    let mut table =
        table::with_columns(&["SCHEDULE", "STATE", "FIRES", "TYPE", "QUEUE", "OVERLAP", "STARTED", "NEXT"]);
    for schedule in schedules {
        let (state, mood) = if schedule.paused { ("PAUSED", Mood::Idle) } else { ("ACTIVE", Mood::Good) };
        table.add_row([
            schedule.schedule_id.as_str().into(),
            table::mood_cell(state, mood),
            schedule.words.as_str().into(),
            schedule.workflow_type.as_str().into(),
            schedule.task_queue.as_str().into(),
            schedule.overlap.as_str().into(),
            schedule.started_total.to_string().into(),
            schedule.next_at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now)).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample_now;
    use crate::schedule::view::tests::sample_schedule;

    #[test]
    fn schedules_as_a_table() {
        insta::assert_snapshot!(as_table(&[sample_schedule().into()], sample_now()));
    }
}
