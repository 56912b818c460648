//! The options that describe a schedule, for `create`, `update` and `next`.

use crate::input;
use crate::run::{label, wait_loop};
use kagzi::schedule::{Overlap as Policy, ScheduleBuilder};
use serde_json::value::RawValue;
use std::time::Duration;

/// When it fires.
#[derive(clap::Args, Default)]
pub struct Timing {
    /// A cron expression: 5 fields, 6 with seconds first, 7 with years last, or @daily and its like.
    #[arg(long, value_name = "EXPR", conflicts_with = "every")]
    pub cron: Option<String>,
    /// The time zone of the cron expression, e.g. Europe/Berlin; UTC unless set.
    #[arg(long = "tz", value_name = "ZONE", conflicts_with = "every")]
    pub time_zone: Option<String>,
    /// An interval, e.g. 15m; every hour is on the hour.
    #[arg(long, value_name = "DURATION", value_parser = wait_loop::parse)]
    pub every: Option<Duration>,
    /// Moves the interval: --every 1h --phase 5m fires at five past.
    #[arg(long, value_name = "DURATION", requires = "every", value_parser = wait_loop::parse)]
    pub phase: Option<Duration>,
}

/// What it does, beyond its type.
#[derive(clap::Args, Default)]
pub struct Behaviour {
    /// The input of every run: JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// What to do while an earlier run still goes.
    #[arg(long, value_enum)]
    pub overlap: Option<Overlap>,
    /// Start up to this much later, by a fixed amount per time, e.g. 30s.
    #[arg(long, value_name = "DURATION", value_parser = wait_loop::parse)]
    pub jitter: Option<Duration>,
    /// How many missed times are made up for, the newest.
    #[arg(long, value_name = "TIMES")]
    pub max_catchup: Option<u32>,
    /// For whom its runs are.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// A label of every run that it starts; may be given again.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label::parse)]
    pub labels: Vec<(String, String)>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Overlap {
    Allow,
    Skip,
    BufferOne,
    BufferAll,
    CancelPrevious,
    TerminatePrevious,
}

impl Timing {
    /// Sets what was given. Cron takes the place of an interval, and the other way round.
    pub fn apply(self, mut schedule: ScheduleBuilder) -> ScheduleBuilder {
        if let Some(cron) = self.cron {
            schedule = schedule.cron(cron);
        }
        if let Some(zone) = self.time_zone {
            schedule = schedule.time_zone(zone);
        }
        if let Some(every) = self.every {
            schedule = schedule.every(every);
        }
        if let Some(phase) = self.phase {
            schedule = schedule.phase(phase);
        }
        schedule
    }
}

impl Behaviour {
    /// Sets what was given; labels are put over those that are there.
    pub fn apply(self, mut schedule: ScheduleBuilder) -> anyhow::Result<ScheduleBuilder> {
        if let Some(text) = self.input {
            let input: Box<RawValue> = serde_json::from_slice(&input::read(&text)?)?;
            schedule = schedule.input(input);
        }
        if let Some(overlap) = self.overlap {
            schedule = schedule.overlap(policy(overlap));
        }
        if let Some(jitter) = self.jitter {
            schedule = schedule.jitter(jitter);
        }
        if let Some(user) = self.user {
            schedule = schedule.user_id(user);
        }
        if let Some(times) = self.max_catchup {
            schedule = schedule.max_catchup(times);
        }
        Ok(self.labels.into_iter().fold(schedule, |schedule, (name, value)| schedule.label(name, value)))
    }
}

fn policy(overlap: Overlap) -> Policy {
    match overlap {
        Overlap::Allow => Policy::Allow,
        Overlap::Skip => Policy::Skip,
        Overlap::BufferOne => Policy::BufferOne,
        Overlap::BufferAll => Policy::BufferAll,
        Overlap::CancelPrevious => Policy::CancelPrevious,
        Overlap::TerminatePrevious => Policy::TerminatePrevious,
    }
}
