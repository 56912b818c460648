use super::spec::Timing;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use crate::{table, time_text};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kagzi::schedule::NextTimes;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id; without one, describe the timing with --cron or --every.
    id: Option<String>,
    #[command(flatten)]
    timing: Timing,
    /// How many times to show.
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

#[derive(Serialize)]
struct Next {
    words: String,
    time_zone: String,
    paused: bool,
    times: Vec<Timestamp>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let described = args.timing.cron.is_some() || args.timing.every.is_some();
    if args.id.is_some() == described {
        return Err(Trouble::usage("name a schedule, or describe one with --cron or --every"));
    }
    let client = session.client().await?;
    let answer = match args.id {
        Some(id) => client.schedule_handle(id).next(args.count.into()).await?,
        // Only its timing is read, so its name, type and queue do not matter.
        None => args.timing.apply(client.schedule("", "", "", ())).preview(args.count.into()).await?,
    };
    let next = Next::from(answer);
    match session.format {
        Format::Json => output::print_json(&next),
        Format::Table => {
            output::print(&next.as_text(time_text::now()))?;
            if next.paused {
                output::note("it is paused: none of these fires before somebody resumes it");
            }
            Ok(())
        }
    }
}

impl From<NextTimes> for Next {
    fn from(answer: NextTimes) -> Self {
        Next {
            words: answer.words,
            time_zone: answer.time_zone,
            paused: answer.paused,
            times: answer.times.into_iter().filter_map(|at| time_text::of(Some(at))).collect(),
        }
    }
}

impl Next {
    fn as_text(&self, now: Timestamp) -> String {
        let zone = TimeZone::get(&self.time_zone).unwrap_or(TimeZone::UTC);
        let mut table = table::with_columns(&["LOCAL TIME", "UTC", "IN"]);
        for at in &self.times {
            let local = at.to_zoned(zone.clone()).strftime("%a %d %b %Y %H:%M:%S %:z").to_string();
            table.add_row([local, at.to_string(), time_text::relative(*at, now)]);
        }
        format!("{}\n{}", self.words, table::text(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coming_times_are_shown_in_words_and_in_numbers() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let next = Next {
            words: "at 02:30 (America/New_York)".into(),
            time_zone: "America/New_York".into(),
            paused: false,
            times: vec![at("2026-03-08T07:00:00Z"), at("2026-03-09T06:30:00Z")],
        };

        insta::assert_snapshot!(next.as_text(at("2026-03-08T04:00:00Z")));
    }
}
