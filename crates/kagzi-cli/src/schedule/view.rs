use crate::moment;
use crate::payload::PayloadView;
use crate::run::{label, some_text};
use crate::table;
use jiff::Timestamp;
use kagzi_proto::v1::{OverlapPolicy, Schedule};
use serde::Serialize;
use std::collections::BTreeMap;

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
        let spec = schedule.spec.unwrap_or_default();
        let interval = Some(spec.interval_ms).filter(|ms| *ms > 0);
        ScheduleView {
            schedule_id: schedule.schedule_id,
            namespace: schedule.namespace_id,
            overlap: word(spec.overlap()),
            workflow_type: spec.workflow_type,
            task_queue: spec.task_queue,
            words: schedule.words,
            cron: some_text(spec.cron),
            time_zone: some_text(spec.time_zone),
            interval_ms: interval,
            phase_ms: interval.map(|_| spec.phase_ms),
            jitter_ms: spec.jitter_ms,
            max_catchup: spec.max_catchup.unwrap_or_default(),
            labels: spec.labels.into_iter().collect(),
            paused: schedule.paused,
            note: some_text(schedule.note),
            paused_at: moment::from_wire(schedule.paused_at),
            next_at: moment::from_wire(schedule.next_at),
            started_total: schedule.started_total,
            overlapped_total: schedule.overlapped_total,
            missed_total: schedule.missed_total,
            buffered: schedule.buffered,
            backfills: schedule.backfills,
            last_run_id: some_text(schedule.last_run_id),
            last_nominal_at: moment::from_wire(schedule.last_nominal_at),
            last_started_at: moment::from_wire(schedule.last_started_at),
            version: schedule.version,
            created_at: moment::from_wire(schedule.created_at),
            updated_at: moment::from_wire(schedule.updated_at),
            input: PayloadView::from_wire(spec.input),
        }
    }
}

impl ScheduleView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| moment::absolute_and_relative(time, now));
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

fn word(overlap: OverlapPolicy) -> String {
    let name = overlap.as_str_name();
    name.strip_prefix("OVERLAP_POLICY_").unwrap_or(name).to_lowercase().replace('_', "-")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::sample_now;
    use crate::{output, payload};
    use kagzi_proto::v1::ScheduleSpec;

    pub fn sample_schedule() -> Schedule {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let spec = ScheduleSpec {
            cron: "30 2 * * *".into(),
            time_zone: "America/New_York".into(),
            workflow_type: "report".into(),
            task_queue: "reports".into(),
            input: Some(payload::json(r#"{"kind":"daily"}"#)),
            overlap: OverlapPolicy::BufferOne.into(),
            max_catchup: Some(100),
            labels: [("tenant".into(), "acme".into()), ("tier".into(), "gold".into())].into(),
            ..ScheduleSpec::default()
        };
        Schedule {
            schedule_id: "nightly".into(),
            namespace_id: "default".into(),
            spec: Some(spec),
            version: 7,
            next_at: at(1_794_814_200),
            created_at: at(1_794_700_000),
            updated_at: at(1_794_700_000),
            started_total: 6,
            overlapped_total: 1,
            last_run_id: "0199f3c2-7d1a-7c4e-9b1f-5a2e8d7c6b3a".into(),
            last_nominal_at: at(1_794_727_800),
            last_started_at: at(1_794_727_800),
            words: "at 02:30 (America/New_York)".into(),
            ..Schedule::default()
        }
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
