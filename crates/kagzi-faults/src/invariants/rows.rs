//! What the checks look at, read from whichever database there was.

use std::collections::HashMap;

use kagzi_model::Event as Line;
use kagzi_store::EventRow;
use serde_json::Value;

/// Everything.
pub struct Rows {
    pub runs: HashMap<String, Run>,
    /// By run, in order.
    pub events: HashMap<String, Vec<Event>>,
    /// Sums over all workers.
    pub completed_total: i64,
    pub failed_total: i64,
    /// Where servers share a database, totals are written with the heartbeats: a server that dies takes the
    /// last seconds' along, so that they may be too low, and are never too high.
    pub totals_lag: bool,
    /// What [`MUST_BE_NONE`] found.
    pub must_be_none: Vec<(&'static str, i64)>,
}

pub struct Run {
    pub id: String,
    pub workflow_type: String,
    pub status: i64,
    pub state: Value,
    pub epoch: i64,
    pub due_at: Option<i64>,
    pub sweep_at: Option<i64>,
    pub lease_worker: Option<String>,
    pub finished_at: Option<i64>,
    pub deadline_at: Option<i64>,
    pub options: Value,
    /// The event with which the living generation begins.
    pub first_seq: i64,
}

impl Run {
    pub fn finished(&self) -> bool {
        (4..=7).contains(&self.status)
    }
}

pub struct Event {
    pub seq: i64,
    pub at: i64,
    pub kind: i64,
    pub step: Option<String>,
    pub detail: Value,
    pub payload: Option<Vec<u8>>,
    /// As the model has it.
    pub line: Line,
}

/// The events of each run, in order.
pub fn by_run(events: Vec<EventRow>) -> HashMap<String, Vec<Event>> {
    let mut by_run: HashMap<String, Vec<Event>> = HashMap::new();
    for EventRow { run, event, .. } in events {
        let step = event.kind.step().map(|(step, _)| step.to_string());
        let flat = Event {
            seq: event.seq.cast_signed(),
            at: event.at.0,
            kind: event.kind.number().into(),
            step,
            detail: json(&event.kind.to_json()),
            payload: event.payload.as_ref().map(|payload| payload.data.to_vec()),
            line: event,
        };
        by_run.entry(run.to_string()).or_default().push(flat);
    }
    by_run
}

/// Rows that must not exist, counted by the database itself: the claim, and a statement that both engines
/// take, when `{since}` is said in their own words.
pub const MUST_BE_NONE: &[(&str, &str)] = &[
    (
        "I19: a question is open whose run has ended or is gone",
        "SELECT count(*) FROM interventions
         WHERE state IN (1, 2)
           AND NOT EXISTS (SELECT 1 FROM runs
                           WHERE runs.namespace_id = interventions.namespace_id
                             AND runs.run_id = interventions.run_id
                             AND runs.finished_at IS NULL)",
    ),
    (
        "I19: a run waits for a person, and nobody can answer",
        "SELECT count(*) FROM runs
         WHERE state LIKE '{\"is\":\"person\"%'
           AND NOT EXISTS (SELECT 1 FROM interventions
                           WHERE interventions.namespace_id = runs.namespace_id
                             AND interventions.run_id = runs.run_id
                             AND interventions.state IN (1, 2))",
    ),
    (
        "I20: a notice is about a question that is not there",
        "SELECT count(*) FROM notices
         WHERE NOT EXISTS (SELECT 1 FROM interventions
                           WHERE interventions.namespace_id = notices.namespace_id
                             AND interventions.intervention_id = notices.intervention_id)",
    ),
    (
        "I20: something is still to be sent about a closed question but that it is closed",
        "SELECT count(*) FROM notices
         JOIN interventions ON interventions.namespace_id = notices.namespace_id
          AND interventions.intervention_id = notices.intervention_id
         WHERE interventions.state > 2 AND notices.next_at IS NOT NULL AND notices.message <> 4",
    ),
    (
        "two runs share a business id",
        "SELECT count(*) FROM
            (SELECT 1 FROM runs WHERE business_id IS NOT NULL
             GROUP BY namespace_id, business_id HAVING count(*) > 1) AS odd",
    ),
    (
        "an event belongs to no run",
        "SELECT count(*) FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)",
    ),
    (
        "I4: a run is leased to a worker that is not registered or has left",
        "SELECT count(*) FROM runs
         LEFT JOIN workers ON workers.worker_id = runs.lease_worker
         WHERE runs.lease_worker IS NOT NULL AND (workers.worker_id IS NULL OR workers.status = 3)",
    ),
    (
        "I7: a worker holds more runs than it may",
        "SELECT count(*) FROM
            (SELECT 1 FROM runs JOIN workers ON workers.worker_id = runs.lease_worker
             GROUP BY workers.worker_id, workers.max_concurrent
             HAVING count(*) > workers.max_concurrent) AS odd",
    ),
    (
        "I18 a run that has ended or is gone waits for no event",
        "SELECT count(*) FROM event_subscriptions
         LEFT JOIN runs ON runs.run_id = event_subscriptions.run_id
         WHERE runs.run_id IS NULL OR runs.finished_at IS NOT NULL",
    ),
    (
        "I18 a run that is parked in a wait for an event can be found by its topic",
        "SELECT count(*) FROM runs
         WHERE runs.state LIKE '{\"is\":\"event\"%'
           AND NOT EXISTS (SELECT 1 FROM event_subscriptions AS known
                            WHERE known.run_id = runs.run_id
                              AND runs.state LIKE '%\"~event/' || known.topic
                                  || CASE WHEN known.event_key = '' THEN '' ELSE '#' || known.event_key END
                                  || '\"%')",
    ),
    (
        "I18 no run sleeps through an event that was published after its wait had begun",
        "SELECT count(*) FROM runs
           JOIN event_subscriptions AS known ON known.run_id = runs.run_id
           JOIN published_events AS told
             ON told.namespace_id = known.namespace_id
            AND told.topic = known.topic
            AND told.event_key = known.event_key
          WHERE told.due_at IS NULL
            AND runs.state LIKE '{\"is\":\"event\"%'
            AND runs.state LIKE '%\"~event/' || known.topic
                || CASE WHEN known.event_key = '' THEN '' ELSE '#' || known.event_key END || '\"%'
            AND {since} < told.published_at",
    ),
];

/// The time since when a parked run waits, as SQLite and PostgreSQL read it out of its state.
pub const SINCE_SQLITE: &str = "json_extract(runs.state, '$.since')";
pub const SINCE_POSTGRES: &str = "(runs.state::json ->> 'since')::bigint";

pub const COMPLETED_TOTAL: &str = "SELECT CAST(coalesce(sum(completed_total), 0) AS BIGINT) FROM workers";
pub const FAILED_TOTAL: &str = "SELECT CAST(coalesce(sum(failed_total), 0) AS BIGINT) FROM workers";

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("states, options and details are JSON")
}
