use crate::payload::PayloadView;
use crate::run::{label, some_text};
use crate::table;
use crate::time_text;
use jiff::Timestamp;
use kagzi::schedule::{Overlap, Schedule, Timing};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A schedule as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct ScheduleView {
    pub schedule_id: String,
    pub namespace: String,
    pub workflow_type: String,
    pub task_queue: String,
    /// The timing in English.
    pub words: String,
    pub cron: Option<String>,
    pub time_zone: Option<String>,
    pub interval_ms: Option<i64>,
    pub phase_ms: Option<i64>,
    pub overlap: String,
    pub jitter_ms: i64,
    pub max_catchup: u32,
    /// For whom its runs are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Of every run that it starts.
    pub labels: BTreeMap<String, String>,
    pub paused: bool,
    pub note: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    pub started_total: u64,
    /// Left out because an earlier run was still going.
    pub overlapped_total: u64,
    /// Left out because more was missed than is made up for.
    pub missed_total: u64,
    pub buffered: u32,
    pub backfills: u32,
    pub last_run_id: Option<String>,
    pub last_nominal_at: Option<Timestamp>,
    pub last_started_at: Option<Timestamp>,
    pub version: u64,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// Left out by `schedule list`, which does not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<PayloadView>,
}

impl From<Schedule> for ScheduleView {
    fn from(schedule: Schedule) -> Self {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (cron, time_zone, interval, phase) = match schedule.timing {
            Timing::Cron { expression, time_zone } => (Some(expression), time_zone, None, None),
            Timing::Every { interval, phase } => (None, None, Some(interval), Some(phase)),
            // The SDK may learn of others; their words are shown.
            _ => (None, None, None, None),
        };
        ScheduleView {
            schedule_id: schedule.schedule_id,
            namespace: schedule.namespace,
            overlap: word(schedule.overlap).to_owned(),
            workflow_type: schedule.workflow_type,
            task_queue: schedule.task_queue,
            words: schedule.words,
            cron,
            time_zone,
            interval_ms: interval.map(millis),
            phase_ms: phase.map(millis),
            jitter_ms: millis(schedule.jitter),
            max_catchup: schedule.max_catchup.unwrap_or_default(),
            user_id: schedule.user_id,
            labels: schedule.labels,
            paused: schedule.paused,
            note: some_text(schedule.note),
            paused_at: time_text::of(schedule.paused_at),
            next_at: time_text::of(schedule.next_at),
            started_total: schedule.started_total,
            overlapped_total: schedule.overlapped_total,
            missed_total: schedule.missed_total,
            buffered: schedule.buffered,
            backfills: schedule.backfills,
            last_run_id: schedule.last_run_id,
            last_nominal_at: time_text::of(schedule.last_nominal_at),
            last_started_at: time_text::of(schedule.last_started_at),
            version: schedule.version,
            created_at: time_text::of(Some(schedule.created_at)),
            updated_at: time_text::of(schedule.updated_at),
            input: PayloadView::of(schedule.input),
        }
    }
}

impl ScheduleView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| time_text::absolute_and_relative(time, now));
        let count = |n: u64| Some(n.to_string()).filter(|_| n > 0);
        table::text(table::of_fields([
            ("schedule", Some(self.schedule_id.clone())),
            ("fires", Some(self.words.clone())),
            ("cron", self.cron.clone()),
            ("starts", Some(format!("{} on queue {}", self.workflow_type, self.task_queue))),
            ("namespace", Some(self.namespace.clone())),
            ("overlap", Some(self.overlap.clone())),
            ("jitter", Some(format!("{}ms", self.jitter_ms)).filter(|_| self.jitter_ms > 0)),
            ("catches up", Some(format!("{} missed times at most", self.max_catchup))),
            ("labels", some_text(label::text(&self.labels))),
            ("paused", time(self.paused_at)),
            ("note", self.note.clone()),
            ("next", time(self.next_at)),
            ("last run", self.last_run_id.clone()),
            ("last nominal", time(self.last_nominal_at)),
            ("started", Some(self.started_total.to_string())),
            ("overlapped", count(self.overlapped_total)),
            ("missed", count(self.missed_total)),
            ("buffered", count(self.buffered.into())),
            ("backfills", count(self.backfills.into())),
            ("input", self.input.as_ref().map(PayloadView::text)),
            ("version", Some(self.version.to_string())),
            ("created", time(self.created_at)),
            ("updated", time(self.updated_at)),
        ]))
    }
}

fn word(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Allow => "allow",
        Overlap::Skip => "skip",
        Overlap::BufferOne => "buffer-one",
        Overlap::BufferAll => "buffer-all",
        Overlap::CancelPrevious => "cancel-previous",
        Overlap::TerminatePrevious => "terminate-previous",
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::sample_now;
    use crate::{output, payload};
    use std::time::SystemTime;

    pub fn sample_schedule() -> Schedule {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut schedule = Schedule::default();
        (schedule.schedule_id, schedule.namespace) = ("nightly".into(), "default".into());
        schedule.timing =
            Timing::Cron { expression: "30 2 * * *".into(), time_zone: Some("America/New_York".into()) };
        (schedule.workflow_type, schedule.task_queue) = ("report".into(), "reports".into());
        schedule.input = Some(payload::json(r#"{"kind":"daily"}"#));
        (schedule.overlap, schedule.max_catchup) = (Overlap::BufferOne, Some(100));
        schedule.labels = [("tenant".into(), "acme".into()), ("tier".into(), "gold".into())].into();
        (schedule.version, schedule.next_at) = (7, Some(at(1_794_814_200)));
        (schedule.created_at, schedule.updated_at) = (at(1_794_700_000), Some(at(1_794_700_000)));
        (schedule.started_total, schedule.overlapped_total) = (6, 1);
        schedule.last_run_id = Some("0199f3c2-7d1a-7c4e-9b1f-5a2e8d7c6b3a".into());
        schedule.last_nominal_at = Some(at(1_794_727_800));
        schedule.last_started_at = Some(at(1_794_727_800));
        schedule.words = "at 02:30 (America/New_York)".into();
        schedule
    }

    #[test]
    fn a_schedule_as_json() {
        insta::assert_snapshot!(output::json(&ScheduleView::from(sample_schedule())));
    }

    #[test]
    fn a_schedule_as_fields() {
        insta::assert_snapshot!(ScheduleView::from(sample_schedule()).fields(sample_now()));
    }
}
