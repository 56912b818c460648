use super::find;
use super::view::RunView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;
use jiff::Timestamp;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Why {
    run_id: String,
    reason: String,
    sentence: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let mut answer = run.explain().await?;
    if !answer.sentence.contains("deadline") {
        answer.sentence.extend(deadline_first(&RunView::from(run.describe().await?), time_text::now()));
    }
    let reason = answer.reason.map_or("finished", |reason| reason.name());

    match session.format {
        Format::Json => output::print_json(&Why {
            run_id: run.run_id().to_owned(),
            reason: reason.to_owned(),
            sentence: answer.sentence,
        }),
        Format::Table => output::print(&answer.sentence),
    }
}

/// What waits for a time after its deadline never gets there.
fn deadline_first(run: &RunView, now: Timestamp) -> Option<String> {
    let (deadline_at, wake_up_at) = (run.deadline_at?, run.wake_up_at?);
    let at = time_text::absolute_and_relative(deadline_at, now);
    (deadline_at <= wake_up_at)
        .then(|| format!("; its deadline comes first, at {at}: it ends TIMED_OUT then"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(deadline_s: i64, wake_up_s: i64) -> RunView {
        let time = |second| Timestamp::from_second(second).ok().map(std::time::SystemTime::from);
        let mut run = kagzi::client::Run::default();
        (run.deadline_at, run.wake_up_at) = (time(deadline_s), time(wake_up_s));
        RunView::from(run)
    }

    #[test]
    fn a_deadline_is_named_where_it_comes_first_and_only_there() {
        let now = Timestamp::from_second(1_900_000_000).unwrap();

        let first = deadline_first(&waiting(1_900_000_003, 1_900_000_060), now).unwrap();
        assert!(first.contains("deadline comes first") && first.contains("in 3s"), "{first}");
        assert_eq!(deadline_first(&waiting(1_900_000_090, 1_900_000_060), now), None);
    }
}
