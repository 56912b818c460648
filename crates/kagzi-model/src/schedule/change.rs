//! What a person asks of a schedule.

use uuid::Uuid;

use super::{Backfill, Paused, Plan, Schedule, ScheduleState, Timetable, TimingError, key, tick};
use crate::{Name, Payload, Rejection, RunId, StartRun, Timestamp, limits};

/// Names a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduleKey {
    pub namespace: Name,
    pub id: Name,
}

/// A command and the schedule it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRequest {
    pub key: ScheduleKey,
    pub command: ScheduleCommand,
}

impl ScheduleRequest {
    /// Bytes of the payload that it carries.
    pub fn payload_bytes(&self) -> usize {
        match &self.command {
            ScheduleCommand::Create(new) | ScheduleCommand::Update { new, .. } => new.input.data.len(),
            ScheduleCommand::Delete
            | ScheduleCommand::Pause { .. }
            | ScheduleCommand::Resume { .. }
            | ScheduleCommand::Trigger { .. }
            | ScheduleCommand::Backfill(_) => 0,
        }
    }
}

/// One request. Each is safe to send twice.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleCommand {
    /// Makes it, unless the id is taken.
    Create(Box<NewSchedule>),
    /// Replaces plan and input; with `if_version` only if nobody changed it since.
    Update { new: Box<NewSchedule>, if_version: Option<u64> },
    /// Removes it; its runs go on.
    Delete,
    /// Holds it, with a note for the others. Backfills and triggers still run.
    Pause { note: String },
    /// Lets it go on, with or without the times that passed meanwhile.
    Resume { catch_up: bool },
    /// Starts a run now, whatever the timetable and the overlap policy say.
    Trigger { run: RunId, trigger: Name },
    /// Starts runs for the times in `(after, to]`.
    Backfill(Backfill),
}

/// What a new or changed schedule consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    pub uid: Uuid,
    pub plan: Plan,
    pub input: Payload,
    /// Begins paused, with this note.
    pub paused: Option<String>,
}

/// The answer to an accepted request.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleChange {
    /// The row as it is now; for a deletion, as it was.
    pub schedule: Schedule,
    pub write: bool,
    pub deleted: bool,
    /// A run to start in the same commit.
    pub start: Option<StartRun>,
}

/// Why a request is refused, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRejection {
    #[error(
        "there is no schedule '{id}' in namespace '{namespace}'; list them with: kagzi --namespace \
         {namespace} schedule list",
        id = key.id, namespace = key.namespace
    )]
    NotFound { key: ScheduleKey },
    #[error(
        "schedule '{id}' exists already with another {what}; update it, or use another id", id = key.id
    )]
    Exists { key: ScheduleKey, what: &'static str },
    #[error("{0}")]
    Timing(#[from] TimingError),
    #[error("the timetable has no time after now; its years may be over")]
    NothingLeft,
    #[error(
        "schedule '{id}' is at version {current}, if_version is {named}; read it again and decide \
         anew", id = key.id
    )]
    Stale { key: ScheduleKey, named: u64, current: u64 },
    #[error("the backfill's range is empty: from must be before to")]
    EmptyRange,
    #[error("the backfill's range ends in the future; it must end at the present or before")]
    FutureRange,
    #[error("the timetable has no time in the backfill's range")]
    NothingInRange,
    #[error("the backfill's range has {count} times, at most {max} are allowed; split it")]
    TooManyTimes { count: u64, max: u64 },
    #[error("{count} backfills of this schedule are not done yet, at most {max} may wait")]
    TooManyBackfills { count: usize, max: usize },
    #[error(
        "namespace '{namespace}' has {max} schedules, as many as it may have (scheduler.schedules_max); \
         delete some: \
         kagzi --namespace {namespace} schedule delete ID"
    )]
    TooMany { namespace: Name, max: usize },
    /// The namespace takes no runs.
    #[error("{0}")]
    NotAdmitted(Rejection),
}

impl ScheduleCommand {
    /// It makes runs that were not there before, so the namespace must admit them.
    pub fn makes_runs(&self) -> bool {
        match self {
            ScheduleCommand::Create(_) | ScheduleCommand::Trigger { .. } | ScheduleCommand::Backfill(_) => {
                true
            }
            ScheduleCommand::Update { .. }
            | ScheduleCommand::Delete
            | ScheduleCommand::Pause { .. }
            | ScheduleCommand::Resume { .. } => false,
        }
    }
}

/// Decides a request on what is known of the schedule.
pub fn change(
    now: Timestamp,
    seen: Option<&Schedule>,
    request: &ScheduleRequest,
) -> Result<ScheduleChange, ScheduleRejection> {
    let found = || seen.cloned().ok_or_else(|| ScheduleRejection::NotFound { key: request.key.clone() });
    match &request.command {
        ScheduleCommand::Create(new) => create(now, seen, &request.key, new),
        ScheduleCommand::Update { new, if_version } => update(now, found()?, new, *if_version),
        ScheduleCommand::Delete => {
            Ok(ScheduleChange { schedule: found()?, write: true, deleted: true, start: None })
        }
        ScheduleCommand::Pause { note } => pause(now, found()?, note),
        ScheduleCommand::Resume { catch_up } => resume(now, found()?, *catch_up),
        ScheduleCommand::Trigger { run, trigger } => {
            let schedule = found()?;
            let start = tick::start(&schedule, *run, now);
            let start = StartRun { business_id: Some(key::triggered_id(&schedule.id, trigger)), ..start };
            Ok(ScheduleChange { schedule, write: false, deleted: false, start: Some(start) })
        }
        ScheduleCommand::Backfill(range) => backfill(now, found()?, *range),
    }
}

fn create(
    now: Timestamp,
    seen: Option<&Schedule>,
    key: &ScheduleKey,
    new: &NewSchedule,
) -> Result<ScheduleChange, ScheduleRejection> {
    if let Some(taken) = seen {
        let differs = |what| Err(ScheduleRejection::Exists { key: key.clone(), what });
        if taken.plan != new.plan {
            return differs("plan");
        }
        if taken.input != new.input {
            return differs("input");
        }
        return Ok(ScheduleChange { schedule: taken.clone(), write: false, deleted: false, start: None });
    }
    let timetable = timetable(now, &new.plan)?;
    let paused = new.paused.clone().map(|note| Paused { note, since: now });
    let state = ScheduleState {
        revision: 1,
        decided_until: now,
        next_at: None,
        paused,
        running: Vec::new(),
        buffer: Default::default(),
        backfills: Default::default(),
        started_total: 0,
        overlapped_total: 0,
        missed_total: 0,
        last: None,
    };
    let schedule = Schedule {
        namespace: key.namespace.clone(),
        id: key.id.clone(),
        uid: new.uid,
        version: 0,
        plan: new.plan.clone(),
        input: new.input.clone(),
        state,
        created_at: now,
        updated_at: now,
    };
    Ok(armed(now, schedule, &timetable))
}

fn update(
    now: Timestamp,
    mut schedule: Schedule,
    new: &NewSchedule,
    if_version: Option<u64>,
) -> Result<ScheduleChange, ScheduleRejection> {
    let current = schedule.state.revision;
    if let Some(named) = if_version.filter(|named| *named != current) {
        return Err(ScheduleRejection::Stale { key: schedule.key(), named, current });
    }
    let timetable = timetable(now, &new.plan)?;
    if schedule.plan.timing != new.plan.timing {
        // The new timetable holds from now on; it has missed nothing.
        schedule.state.decided_until = now;
    }
    schedule.state.revision += 1;
    schedule.plan = new.plan.clone();
    schedule.input = new.input.clone();
    schedule.updated_at = now;
    Ok(armed(now, schedule, &timetable))
}

fn pause(now: Timestamp, mut schedule: Schedule, note: &str) -> Result<ScheduleChange, ScheduleRejection> {
    let timetable = schedule.plan.timing.timetable()?;
    let since = schedule.state.paused.as_ref().map_or(now, |paused| paused.since);
    schedule.state.paused = Some(Paused { note: note.to_owned(), since });
    Ok(armed(now, schedule, &timetable))
}

fn resume(
    now: Timestamp,
    mut schedule: Schedule,
    catch_up: bool,
) -> Result<ScheduleChange, ScheduleRejection> {
    if schedule.state.paused.take().is_none() {
        return Ok(ScheduleChange { schedule, write: false, deleted: false, start: None });
    }
    let timetable = schedule.plan.timing.timetable()?;
    if !catch_up {
        let state = &mut schedule.state;
        state.missed_total += timetable.count(state.decided_until, now);
        state.decided_until = now.max(state.decided_until);
    }
    Ok(armed(now, schedule, &timetable))
}

fn backfill(
    now: Timestamp,
    mut schedule: Schedule,
    range: Backfill,
) -> Result<ScheduleChange, ScheduleRejection> {
    if range.after >= range.to {
        return Err(ScheduleRejection::EmptyRange);
    }
    if range.to > now {
        return Err(ScheduleRejection::FutureRange);
    }
    // Sent twice is asked once.
    if schedule.state.backfills.iter().any(|known| known.to == range.to && known.after >= range.after) {
        return Ok(ScheduleChange { schedule, write: false, deleted: false, start: None });
    }
    let count = schedule.state.backfills.len();
    if count >= limits::BACKFILLS_MAX {
        return Err(ScheduleRejection::TooManyBackfills { count, max: limits::BACKFILLS_MAX });
    }
    let timetable = schedule.plan.timing.timetable()?;
    match timetable.count(range.after, range.to) {
        0 => return Err(ScheduleRejection::NothingInRange),
        count if count > limits::BACKFILL_TIMES_MAX => {
            return Err(ScheduleRejection::TooManyTimes { count, max: limits::BACKFILL_TIMES_MAX });
        }
        _ => schedule.state.backfills.push_back(range),
    }
    Ok(armed(now, schedule, &timetable))
}

fn armed(now: Timestamp, mut schedule: Schedule, timetable: &Timetable) -> ScheduleChange {
    schedule.arm(now, timetable);
    if schedule.waits_for_an_end() && schedule.state.paused.is_none() {
        // Look again at once: a run may have ended while this request held the row.
        schedule.state.next_at = Some(now);
    }
    ScheduleChange { schedule, write: true, deleted: false, start: None }
}

fn timetable(now: Timestamp, plan: &Plan) -> Result<Timetable, ScheduleRejection> {
    let timetable = plan.timing.timetable()?;
    timetable.next_after(now).ok_or(ScheduleRejection::NothingLeft)?;
    Ok(timetable)
}
