//! `client.schedule(..)`: a schedule that is being described, and made by `.await`.

use std::future::IntoFuture;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1;
use serde::Serialize;

use crate::client::Client;
use crate::client::start::Timeouts;
use crate::client::wire::rpc;
use crate::codec::CodecError;
use crate::error::{Code, Error};
use crate::payload;
use crate::retry_policy::RetryPolicy;
use crate::schedule::handle::{NextTimes, ScheduleHandle};

/// What becomes of a time that comes while an earlier run of the schedule still goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Start it all the same.
    #[default]
    Allow,
    /// Leave it out, and count it.
    Skip,
    /// Start it when the earlier run has ended; one waits at most.
    BufferOne,
    /// Start them one after the other.
    BufferAll,
    /// Cancel the earlier run and start it at once.
    CancelPrevious,
    /// Terminate the earlier run and start it at once.
    TerminatePrevious,
}

impl Overlap {
    pub(crate) fn from_proto(overlap: v1::OverlapPolicy) -> Overlap {
        match overlap {
            v1::OverlapPolicy::Unspecified | v1::OverlapPolicy::Allow => Overlap::Allow,
            v1::OverlapPolicy::Skip => Overlap::Skip,
            v1::OverlapPolicy::BufferOne => Overlap::BufferOne,
            v1::OverlapPolicy::BufferAll => Overlap::BufferAll,
            v1::OverlapPolicy::CancelPrevious => Overlap::CancelPrevious,
            v1::OverlapPolicy::TerminatePrevious => Overlap::TerminatePrevious,
        }
    }

    fn to_proto(self) -> v1::OverlapPolicy {
        match self {
            Overlap::Allow => v1::OverlapPolicy::Allow,
            Overlap::Skip => v1::OverlapPolicy::Skip,
            Overlap::BufferOne => v1::OverlapPolicy::BufferOne,
            Overlap::BufferAll => v1::OverlapPolicy::BufferAll,
            Overlap::CancelPrevious => v1::OverlapPolicy::CancelPrevious,
            Overlap::TerminatePrevious => v1::OverlapPolicy::TerminatePrevious,
        }
    }
}

/// A schedule that is being described: give it [`cron`](Self::cron) or [`every`](Self::every), then `.await`
/// it. Making it again with the same description is harmless; with another one it is refused, see
/// [`update`](Self::update).
///
/// ```no_run
/// # async fn plan(client: kagzi::Client) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::RetryPolicy;
/// use kagzi::client::Timeouts;
/// use kagzi::schedule::Overlap;
///
/// let minute = Duration::from_secs(60);
/// let report = client.schedule("nightly", "report", "reports", ()).cron("0 3 * * *");
/// let report = report.time_zone("Europe/Berlin").overlap(Overlap::Skip).jitter(5 * minute).max_catchup(1);
/// let report = report.label("tenant", "acme").user_id("ann").paused("not before Monday");
/// let report = report.retry_policy(RetryPolicy::STANDARD).run_retry_policy(RetryPolicy::QUICK);
/// let report = report.timeouts(Timeouts { execution: Some(60 * minute), ..Timeouts::default() });
/// let report = report.on_failure("tidy-up").on_failure_queue("cleaning").await?;
/// let often = client.schedule("often", "poll", "polls", ()).every(15 * minute).phase(minute);
/// println!("{}", often.preview(3).await?.words);
/// let changed = report.edit().await?.workflow_type("summary").queue("summaries").input("short");
/// changed.remove_label("tenant").update().await?;
/// # Ok(()) }
/// ```
#[must_use = "a schedule is made by .await"]
pub struct ScheduleBuilder {
    client: Client,
    id: String,
    spec: Result<v1::ScheduleSpec, Error>,
    paused: Option<String>,
    timeouts: Timeouts,
    /// An update is refused when the schedule is at another version; 0 = whatever it is.
    if_version: u64,
}

impl ScheduleBuilder {
    /// The description of a schedule that exists, to be changed.
    pub(crate) fn of(client: Client, schedule: v1::Schedule) -> ScheduleBuilder {
        let spec = schedule.spec.unwrap_or_default();
        ScheduleBuilder {
            client,
            id: schedule.schedule_id,
            timeouts: spec.timeouts.map(Timeouts::from_proto).unwrap_or_default(),
            spec: Ok(spec),
            paused: None,
            if_version: schedule.version,
        }
    }

    /// Starts runs of this type.
    pub fn workflow_type(self, name: impl Into<String>) -> Self {
        self.change(|spec| spec.workflow_type = name.into())
    }

    /// Starts them on this queue.
    pub fn queue(self, task_queue: impl Into<String>) -> Self {
        self.change(|spec| spec.task_queue = task_queue.into())
    }

    /// Starts them with this input.
    pub fn input(mut self, input: impl Serialize) -> Self {
        match (payload::encode(&input), &mut self.spec) {
            (Ok(input), Ok(spec)) => spec.input = Some(input),
            (Err(error), spec) => {
                *spec = Err(Error::Encode { what: "the schedule's input", message: error.to_string() });
            }
            (Ok(_), Err(_)) => {}
        }
        self
    }

    /// Labels its runs no longer with this name.
    pub fn remove_label(self, name: &str) -> Self {
        self.change(|spec| drop(spec.labels.remove(name)))
    }

    pub(crate) fn new(
        client: Client,
        id: String,
        (workflow_type, task_queue): (String, String),
        input: &impl Serialize,
    ) -> ScheduleBuilder {
        let spec = payload::encode(input)
            .map(|input| v1::ScheduleSpec {
                workflow_type,
                task_queue,
                input: Some(input),
                ..Default::default()
            })
            .map_err(|error| Error::Encode { what: "the schedule's input", message: error.to_string() });
        ScheduleBuilder { client, id, spec, paused: None, timeouts: Timeouts::default(), if_version: 0 }
    }

    /// Fires by a cron expression: 5 fields, 6 with seconds first, 7 with years last, or `@daily` and its
    /// like. Weekdays are POSIX (0 and 7 are Sunday). In UTC, unless [`time_zone`](Self::time_zone) says
    /// otherwise.
    pub fn cron(self, expression: impl Into<String>) -> Self {
        self.change(|spec| {
            spec.cron = expression.into();
            (spec.interval_ms, spec.phase_ms) = (0, 0);
        })
    }

    /// The zone whose wall clock the cron expression reads, e.g. `Europe/Berlin`. Each local day runs as
    /// written, also when clocks change.
    pub fn time_zone(self, name: impl Into<String>) -> Self {
        self.change(|spec| spec.time_zone = name.into())
    }

    /// Fires every so often, counted from 1970 in UTC: every hour is on the hour. Takes the place of
    /// [`cron`](Self::cron), and the other way round.
    pub fn every(self, interval: Duration) -> Self {
        self.change(|spec| {
            spec.interval_ms = millis(interval);
            (spec.cron, spec.time_zone, spec.phase_ms) = (String::new(), String::new(), 0);
        })
    }

    /// Moves [`every`](Self::every): an hour with a phase of five minutes fires at five past.
    pub fn phase(self, phase: Duration) -> Self {
        self.change(|spec| spec.phase_ms = millis(phase))
    }

    /// What to do while an earlier run still goes. Default: start all the same.
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.change(|spec| spec.overlap = overlap.to_proto().into())
    }

    /// Spreads the starts: each is up to this much later than its nominal time, always the same for the same
    /// time.
    pub fn jitter(self, width: Duration) -> Self {
        self.change(|spec| spec.jitter_ms = millis(width))
    }

    /// How many missed times are made up for after an outage, the newest. Default: 100.
    pub fn max_catchup(self, times: u32) -> Self {
        self.change(|spec| spec.max_catchup = Some(times))
    }

    /// A label of every run that it starts, for people who search runs. At most 64; the last of a name
    /// counts.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|spec| drop(spec.labels.insert(name.into(), value.into())))
    }

    /// For whom its runs are: lists are filtered by it. Empty: for nobody in particular.
    pub fn user_id(self, user: impl Into<String>) -> Self {
        self.change(|spec| spec.user_id = user.into())
    }

    /// Makes it paused, with a note for the others.
    pub fn paused(mut self, note: impl Into<String>) -> Self {
        self.paused = Some(note.into());
        self
    }

    /// How the steps of its runs are retried.
    pub fn retry_policy(self, policy: RetryPolicy) -> Self {
        self.change(|spec| spec.retry_policy = policy.to_proto())
    }

    /// Asks for retries of whole runs.
    pub fn run_retry_policy(self, policy: RetryPolicy) -> Self {
        self.change(|spec| spec.run_retry_policy = Some(policy.to_proto().unwrap_or_default()))
    }

    /// Limits on the time of its runs. Sets what is set there and keeps the rest.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts.step = timeouts.step.or(self.timeouts.step);
        self.timeouts.heartbeat = timeouts.heartbeat.or(self.timeouts.heartbeat);
        self.timeouts.execution = timeouts.execution.or(self.timeouts.execution);
        self
    }

    /// The workflow type that is started when a run of the schedule fails or times out.
    pub fn on_failure(self, workflow_type: impl Into<String>) -> Self {
        self.change(|spec| spec.on_failure_workflow = workflow_type.into())
    }

    /// The queue of that handler. Default: the queue of the run.
    pub fn on_failure_queue(self, task_queue: impl Into<String>) -> Self {
        self.change(|spec| spec.on_failure_task_queue = task_queue.into())
    }

    /// When it would fire, in words and as so many times. Nothing is made, and no schedule need exist.
    pub async fn preview(self, count: usize) -> Result<NextTimes, Error> {
        let client = self.client.clone();
        // Only its timing is read.
        let spec = Some(v1::ScheduleSpec { input: None, ..self.into_spec()? });
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::NextScheduleTimesRequest { namespace_id, spec, ..Default::default() };
        NextTimes::ask(&client, request, count).await
    }

    /// Gives a schedule that exists this description. A new timetable holds from now on.
    pub async fn update(self) -> Result<ScheduleHandle, Error> {
        let (client, id, if_version) = (self.client.clone(), self.id.clone(), self.if_version);
        let request = v1::UpdateScheduleRequest {
            schedule_id: id.clone(),
            namespace_id: client.namespace_id().to_owned(),
            spec: Some(encoded(&client, self.into_spec()?).await?),
            if_version,
        };
        rpc!(client, Schedules.update_schedule, Safe, "update a schedule", request)?;
        Ok(ScheduleHandle::new(client, id))
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ScheduleSpec)) -> Self {
        if let Ok(spec) = &mut self.spec {
            set(spec);
        }
        self
    }

    fn into_spec(self) -> Result<v1::ScheduleSpec, Error> {
        Ok(v1::ScheduleSpec { timeouts: self.timeouts.to_proto(), ..self.spec? })
    }

    async fn create(self) -> Result<ScheduleHandle, Error> {
        let (client, id, paused) = (self.client.clone(), self.id.clone(), self.paused.clone());
        let plain = self.into_spec()?;
        let request = v1::CreateScheduleRequest {
            schedule_id: id.clone(),
            namespace_id: client.namespace_id().to_owned(),
            spec: Some(encoded(&client, plain.clone()).await?),
            paused: paused.is_some(),
            note: paused.unwrap_or_default(),
        };
        let handle = ScheduleHandle::new(client.clone(), id);
        let taken = match create(&client, request.clone()).await {
            Err(taken) if taken.code() == Some(Code::AlreadyExists) && !client.codecs.is_empty() => taken,
            made => return made.map(|there| handle.existed(there)),
        };
        // An encoded input never looks the same twice, so the server sees another one. If the one that is
        // there says the same, ask again with it: then the server compares the rest.
        let stored = handle.stored().await?.spec.and_then(|spec| spec.input);
        let decoded = match stored.clone() {
            Some(input) => client.codecs.decode(input).await.map(Some),
            None => Ok(None),
        };
        if !decoded.is_ok_and(|decoded| decoded == plain.input) {
            return Err(taken);
        }
        let spec = Some(v1::ScheduleSpec { input: stored, ..plain });
        let there = create(&client, v1::CreateScheduleRequest { spec, ..request }).await?;
        Ok(handle.existed(there))
    }
}

impl IntoFuture for ScheduleBuilder {
    type Output = Result<ScheduleHandle, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.create().boxed()
    }
}

/// Whether it was there before.
async fn create(client: &Client, request: v1::CreateScheduleRequest) -> Result<bool, Error> {
    let answer = rpc!(client, Schedules.create_schedule, Safe, "make a schedule", request)?;
    Ok(answer.already_exists)
}

/// The spec as it is sent.
async fn encoded(client: &Client, mut spec: v1::ScheduleSpec) -> Result<v1::ScheduleSpec, Error> {
    if let Some(input) = spec.input.take() {
        let failed =
            |error: CodecError| Error::Encode { what: "the schedule's input", message: error.to_string() };
        spec.input = Some(client.codecs.encode(input).await.map_err(failed)?);
    }
    Ok(spec)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
