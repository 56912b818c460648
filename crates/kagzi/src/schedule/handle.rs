//! A schedule that exists.

use std::time::SystemTime;

use kagzi_proto::v1;

use crate::client::Client;
use crate::client::handle::RunHandle;
use crate::client::runs::Runs;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::schedule::builder::ScheduleBuilder;
use crate::schedule::described::Schedule;

/// A schedule that exists. Cheap to clone.
///
/// ```no_run
/// # async fn operate(nightly: kagzi::schedule::ScheduleHandle) -> anyhow::Result<()> {
/// use std::time::{Duration, SystemTime};
/// use kagzi::schedule::{Backfill, Missed};
///
/// println!("{} (there before: {})", nightly.id(), nightly.already_existed());
/// println!("{}", nightly.describe().await?.words);
/// println!("{:?}", nightly.next(3).await?.times);
/// nightly.pause("holidays").await?;
/// nightly.resume(Missed::Skip).await?;
/// let run = nightly.trigger().await?;
/// let again = nightly.trigger_as("by-hand-7").await?;
/// let week = Duration::from_secs(7 * 24 * 3600);
/// nightly.backfill(SystemTime::now() - week, SystemTime::now(), Backfill::OneByOne).await?;
/// println!("{} runs", nightly.runs().count().await?.count);
/// nightly.edit().await?.cron("0 4 * * *").update().await?;
/// nightly.delete().await?;
/// # drop((run, again));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ScheduleHandle {
    client: Client,
    id: String,
    already_existed: bool,
}

/// What becomes of the times that passed while a schedule was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// They are left out, and counted.
    Skip,
    /// The newest of them are started, up to the schedule's `max_catchup`.
    CatchUp,
}

/// How a backfill starts its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backfill {
    /// All together.
    AtOnce,
    /// Each when the one before has ended.
    OneByOne,
}

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextTimes {
    /// Its timetable in words, e.g. "at 09:00, Monday through Friday".
    pub words: String,
    /// In which it is read; empty for an interval.
    pub time_zone: String,
    /// The next ones, without jitter.
    pub times: Vec<SystemTime>,
    /// It fires at none of them until somebody resumes it.
    pub paused: bool,
}

impl NextTimes {
    pub(crate) async fn ask(
        client: &Client,
        request: v1::NextScheduleTimesRequest,
        count: usize,
    ) -> Result<NextTimes, Error> {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let request = v1::NextScheduleTimesRequest { count, ..request };
        let answer =
            rpc!(client, Schedules.next_schedule_times, Safe, "ask for a schedule's times", request)?;
        let times = answer.times.into_iter().filter_map(|at| SystemTime::try_from(at).ok());
        Ok(NextTimes {
            times: times.collect(),
            words: answer.words,
            time_zone: answer.time_zone,
            paused: answer.paused,
        })
    }
}

impl ScheduleHandle {
    pub(crate) fn new(client: Client, id: String) -> ScheduleHandle {
        ScheduleHandle { client, id, already_existed: true }
    }

    pub(crate) fn existed(mut self, there: bool) -> ScheduleHandle {
        self.already_existed = there;
        self
    }

    /// It was there before, with the same description.
    pub fn already_existed(&self) -> bool {
        self.already_existed
    }

    /// Reads its description, to be changed and put back with [`ScheduleBuilder::update`]: refused when
    /// somebody else changed it meanwhile.
    pub async fn edit(&self) -> Result<ScheduleBuilder, Error> {
        let mut schedule = self.stored().await?;
        self.decode(&mut schedule).await?;
        Ok(ScheduleBuilder::of(self.client.clone(), schedule))
    }

    /// The schedule's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the schedule as it is now.
    pub async fn describe(&self) -> Result<Schedule, Error> {
        self.read(self.stored().await?).await
    }

    async fn read(&self, mut schedule: v1::Schedule) -> Result<Schedule, Error> {
        self.decode(&mut schedule).await?;
        Ok(Schedule::from_proto(schedule))
    }

    async fn decode(&self, schedule: &mut v1::Schedule) -> Result<(), Error> {
        if let Some(spec) = &mut schedule.spec
            && let Some(input) = spec.input.take()
        {
            let decoded = self.client.codecs.decode(input).await;
            spec.input = Some(decoded.map_err(|error| Error::undecodable("the schedule's input", &error))?);
        }
        Ok(())
    }

    /// The same, its input still encoded.
    pub(crate) async fn stored(&self) -> Result<v1::Schedule, Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::GetScheduleRequest { schedule_id, namespace_id };
        let answer = rpc!(self.client, Schedules.get_schedule, Safe, "read a schedule", request)?;
        Ok(answer.schedule.unwrap_or_default())
    }

    /// Holds it, with a note for the others. Triggers and backfills still run.
    pub async fn pause(&self, note: impl Into<String>) -> Result<Schedule, Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::PauseScheduleRequest { schedule_id, namespace_id, note: note.into() };
        let answer = rpc!(self.client, Schedules.pause_schedule, Safe, "pause a schedule", request)?;
        self.read(answer.schedule.unwrap_or_default()).await
    }

    /// Lets it go on, with or without the times that passed meanwhile.
    pub async fn resume(&self, missed: Missed) -> Result<Schedule, Error> {
        let (schedule_id, namespace_id) = self.key();
        let catch_up = missed == Missed::CatchUp;
        let request = v1::ResumeScheduleRequest { schedule_id, namespace_id, catch_up };
        let answer = rpc!(self.client, Schedules.resume_schedule, Safe, "resume a schedule", request)?;
        self.read(answer.schedule.unwrap_or_default()).await
    }

    /// Starts a run now, whatever the timetable and the overlap policy say.
    pub async fn trigger(&self) -> Result<RunHandle, Error> {
        // A name of our own makes the call safe to repeat when its answer was lost.
        self.trigger_as(uuid::Uuid::new_v4().simple().to_string()).await
    }

    /// The same under a name of yours: triggered twice with it, one run is started.
    pub async fn trigger_as(&self, id: impl Into<String>) -> Result<RunHandle, Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::TriggerScheduleRequest { schedule_id, namespace_id, trigger_id: id.into() };
        let started = rpc!(self.client, Schedules.trigger_schedule, Safe, "trigger a schedule", request)?;
        Ok(RunHandle::new(self.client.clone(), started.run_id, started.already_exists))
    }

    /// Starts runs for the times after `from` up to `to`; those that have their run already are passed over.
    /// Answers with how many times the range has.
    pub async fn backfill(&self, from: SystemTime, to: SystemTime, how: Backfill) -> Result<u64, Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::BackfillScheduleRequest {
            schedule_id,
            namespace_id,
            from: Some(from.into()),
            to: Some(to.into()),
            one_by_one: how == Backfill::OneByOne,
        };
        Ok(rpc!(self.client, Schedules.backfill_schedule, Safe, "backfill a schedule", request)?.times)
    }

    /// When it fires next, in words and as so many times, without jitter.
    pub async fn next(&self, count: usize) -> Result<NextTimes, Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::NextScheduleTimesRequest { schedule_id, namespace_id, ..Default::default() };
        NextTimes::ask(&self.client, request, count).await
    }

    /// The runs that it started, newest first; narrow the list down as any other.
    pub fn runs(&self) -> Runs {
        self.client.runs().schedule(&self.id)
    }

    /// Removes it; runs that it started go on.
    pub async fn delete(&self) -> Result<(), Error> {
        let (schedule_id, namespace_id) = self.key();
        let request = v1::DeleteScheduleRequest { schedule_id, namespace_id };
        rpc!(self.client, Schedules.delete_schedule, Safe, "delete a schedule", request).map(drop)
    }

    fn key(&self) -> (String, String) {
        (self.id.clone(), self.client.namespace_id().to_owned())
    }
}
