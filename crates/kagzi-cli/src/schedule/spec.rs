//! The options that describe a schedule, for `create`, `update` and `next`.

use crate::run::{label, patience};
use crate::{input, payload};
use kagzi_proto::v1::{OverlapPolicy, ScheduleSpec};
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
    #[arg(long, value_name = "DURATION", value_parser = patience::parse)]
    pub every: Option<Duration>,
    /// Moves the interval: --every 1h --phase 5m fires at five past.
    #[arg(long, value_name = "DURATION", requires = "every", value_parser = patience::parse)]
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
    #[arg(long, value_name = "DURATION", value_parser = patience::parse)]
    pub jitter: Option<Duration>,
    /// How many missed times are made up for, the newest.
    #[arg(long, value_name = "TIMES")]
    pub max_catchup: Option<u32>,
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
    pub fn apply(self, spec: &mut ScheduleSpec) {
        if let Some(cron) = self.cron {
            spec.cron = cron;
            (spec.interval_ms, spec.phase_ms) = (0, 0);
        }
        if let Some(zone) = self.time_zone {
            spec.time_zone = zone;
        }
        if let Some(every) = self.every {
            spec.interval_ms = millis(every);
            spec.phase_ms = 0;
            (spec.cron, spec.time_zone) = (String::new(), String::new());
        }
        if let Some(phase) = self.phase {
            spec.phase_ms = millis(phase);
        }
    }
}

impl Behaviour {
    /// Sets what was given.
    pub fn apply(self, spec: &mut ScheduleSpec) -> anyhow::Result<()> {
        if let Some(text) = self.input {
            spec.input = Some(payload::json(input::read(&text)?));
        }
        if let Some(overlap) = self.overlap {
            spec.overlap = policy(overlap).into();
        }
        if let Some(jitter) = self.jitter {
            spec.jitter_ms = millis(jitter);
        }
        spec.max_catchup = self.max_catchup.or(spec.max_catchup);
        spec.labels.extend(self.labels);
        Ok(())
    }
}

fn policy(overlap: Overlap) -> OverlapPolicy {
    match overlap {
        Overlap::Allow => OverlapPolicy::Allow,
        Overlap::Skip => OverlapPolicy::Skip,
        Overlap::BufferOne => OverlapPolicy::BufferOne,
        Overlap::BufferAll => OverlapPolicy::BufferAll,
        Overlap::CancelPrevious => OverlapPolicy::CancelPrevious,
        Overlap::TerminatePrevious => OverlapPolicy::TerminatePrevious,
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_expression_takes_the_place_of_an_interval() {
        let mut spec = ScheduleSpec { interval_ms: 60_000, phase_ms: 5, ..ScheduleSpec::default() };

        Timing { cron: Some("@daily".into()), ..Timing::default() }.apply(&mut spec);
        assert_eq!((spec.cron.as_str(), spec.interval_ms, spec.phase_ms), ("@daily", 0, 0));
        Timing { every: Some(Duration::from_secs(5)), ..Timing::default() }.apply(&mut spec);

        assert_eq!((spec.cron.as_str(), spec.interval_ms), ("", 5_000));
    }
    #[test]
    fn labels_are_put_over_those_that_are_there() {
        let mut spec = ScheduleSpec::default();
        let labelled = |labels: &[(&str, &str)]| Behaviour {
            labels: labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..Behaviour::default()
        };

        labelled(&[("tenant", "acme"), ("tier", "gold")]).apply(&mut spec).unwrap();
        labelled(&[("tier", "free")]).apply(&mut spec).unwrap();

        let expected =
            [("tenant", "acme"), ("tier", "free")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(spec.labels, expected.into());
    }
}
