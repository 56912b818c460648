//! The fold: commands over rows, in order, in memory. What comes out is the final rows and the new events.

mod asking;
mod label_rows;
mod listening;
mod released;
mod start_key;
mod touched;

use asking::questions;
use label_rows::label_rows;
use released::log_release;
pub use start_key::{StartKey, Taken};
pub use touched::{LeaseMove, Touched};

use kagzi_model::{
    Act, Aggregate, Blocked, Change, Command, Event, EventKind, Payload, REPLY, Rejection, Reply, Report,
    Run, RunId, StartRun, State, Timestamp, decide,
};

use crate::{
    Continued, EventRow, Finished, LostLease, Outcome, QueueKey, RunKey, SignalNotice, SubscriptionRow,
    WriteSet,
    cache::{Cache, Entry},
    hash::{HashMap, HashSet},
    turn::Asking,
};

/// One batch being folded.
pub struct Fold<'a> {
    now: Timestamp,
    kinds_level: u8,
    cache: &'a mut Cache,
    /// Business ids that were looked up or taken in this batch.
    business: HashMap<StartKey, Option<Taken>>,
    /// Runs whose business id a new run takes over.
    unnamed: Vec<RunKey>,
    inserted: Vec<RunId>,
    updated: Vec<RunId>,
    dirty: HashSet<RunId>,
    /// Runs with labels that were labelled or whose end came or was taken back.
    relabelled: HashSet<RunId>,
    /// Runs that were loaded or changed in this batch. All others are as memory has them, and on a shared
    /// database another server may know better.
    certain: HashSet<RunId>,
    /// Inputs of runs that are loaded again, each with the generation that it belongs to.
    inputs: HashMap<RunId, (u32, Payload)>,
    events: Vec<EventRow>,
    continued: Vec<Continued>,
    listening: listening::Listening,
    pub touched: Touched,
    /// Commands on other runs that belong to decisions of this batch.
    pub follow: Vec<Command>,
    /// Runs that ended badly and may owe their namespace's handler a start.
    pub failed: Vec<RunId>,
    /// Questions to people that were asked or that nobody waits for any more.
    pub asking: Vec<Asking>,
}

impl<'a> Fold<'a> {
    pub fn new(now: Timestamp, kinds_level: u8, cache: &'a mut Cache) -> Self {
        Fold {
            now,
            kinds_level,
            cache,
            business: HashMap::default(),
            unnamed: Vec::new(),
            inserted: Vec::new(),
            updated: Vec::new(),
            dirty: HashSet::default(),
            relabelled: HashSet::default(),
            certain: HashSet::default(),
            inputs: HashMap::default(),
            events: Vec::new(),
            continued: Vec::new(),
            listening: listening::Listening::default(),
            touched: Touched::default(),
            follow: Vec::new(),
            failed: Vec::new(),
            asking: Vec::new(),
        }
    }

    /// Whether the run must be loaded before a command on it can be decided.
    pub fn lacks(&self, id: RunId) -> bool {
        !self.cache.contains(id)
    }

    /// Whether the business id must be looked up before the start can be decided.
    pub fn lacks_business(&self, start: &StartRun) -> bool {
        !self.business.contains_key(&StartKey::of(start))
    }

    /// The run that has the business id of a start, as far as it was looked up.
    pub fn taken_by(&self, start: &StartRun) -> Option<&Taken> {
        self.business.get(&StartKey::of(start))?.as_ref()
    }

    /// Adds a loaded run.
    pub fn know(&mut self, aggregate: Aggregate) {
        let id = aggregate.run.id;
        self.certain.insert(id);
        let generation = aggregate.run.generation;
        let input = self.inputs.remove(&id).filter(|(of, _)| *of == generation).map(|(_, input)| input);
        self.cache.insert(aggregate, input);
    }

    /// Forgets a run that only memory vouches for, so that it is loaded again, and says in which namespace it
    /// is. None when there is no doubt.
    pub fn evict(&mut self, id: RunId) -> Option<kagzi_model::Name> {
        if self.certain.contains(&id) {
            return None;
        }
        let evicted = self.cache.remove(id)?;
        let run = evicted.aggregate.run;
        // The input of a generation never changes, so it need not be read again.
        self.inputs.extend(evicted.input.map(|input| (id, (run.generation, input))));
        Some(run.namespace)
    }

    /// Forgets every run that this batch loaded or changed: what was written of them is taken back.
    pub fn forget_batch(&mut self) {
        for id in self.certain.drain() {
            self.cache.remove(id);
        }
    }

    /// Forgets a run that is deleted, and that a business id named it.
    pub fn forget(&mut self, id: RunId) {
        self.cache.remove(id);
        self.business.values_mut().for_each(|found| drop(found.take_if(|taken| taken.id == id)));
    }

    /// Adds what a look-up of a business id found.
    pub fn know_business(&mut self, key: StartKey, found: Option<Taken>) {
        self.business.insert(key, found);
    }

    /// The run as this batch has left it.
    pub fn entry(&self, id: RunId) -> Option<&Entry> {
        self.cache.get(id)
    }

    /// Decides one command and takes the change over.
    pub fn apply(&mut self, command: &Command) -> Outcome {
        let change = match &command.act {
            Act::Start(start) => {
                let key = StartKey::of(start);
                let taken = self.business.get(&key).and_then(|found| found.as_ref());
                let unreadable = |taken: &Taken, why: &str| {
                    // Never made a second time under the same id.
                    Err(Rejection::Unreadable { run: taken.id, why: why.to_owned() })
                };
                let row;
                let seen = match taken {
                    None => None,
                    Some(taken) => match (self.cache.get(taken.id), &taken.run) {
                        (Some(entry), _) => Some(&entry.aggregate),
                        // What it is told would be refused after the start was answered.
                        (None, Some(Ok(run))) if !start.signals.is_empty() && !run.state.finished() => {
                            return unreadable(taken, "its history cannot be read");
                        }
                        (None, Some(Ok(run))) => {
                            row = Aggregate::new((**run).clone(), 0);
                            Some(&row)
                        }
                        (None, Some(Err(why))) => return unreadable(taken, why),
                        (None, None) => {
                            return unreadable(taken, "it has the business id that was asked for");
                        }
                    },
                };
                let change = decide(self.now, seen, taken.map(|taken| &taken.input), command)?;
                self.may_be_written(&change)?;
                if change.run.is_some() {
                    if let Some(former) = taken.map(|taken| taken.id) {
                        if let Some(entry) = self.cache.get_mut(former) {
                            entry.aggregate.run.business_id = None;
                        }
                        let namespace = start.namespace.clone();
                        self.unnamed.push(RunKey { id: former, namespace });
                    }
                    let (id, input) = (start.id, start.input.clone());
                    self.business.insert(key, Some(Taken { id, input, run: None }));
                }
                change
            }
            Act::Report { .. } | Act::Order { .. } | Act::Duty(_) => {
                let seen = self.cache.get(command.run.id).map(|entry| &entry.aggregate);
                let change = decide(self.now, seen, None, command)?;
                self.may_be_written(&change)?;
                change
            }
        };
        match self.take(command, change) {
            // Refused, and still written: the run is paused by what its worker said.
            Reply::Blocked(Blocked { refusal }) => Err(refusal),
            reply => Ok(reply),
        }
    }

    /// Whether this batch may have opened waits for events.
    pub fn has_opened_waits(&self) -> bool {
        !self.listening.is_idle()
    }

    /// The waits for events that this batch has opened and that are open.
    pub fn opened_waits(&self) -> Vec<SubscriptionRow> {
        self.listening.opened(self.cache)
    }

    /// Adds a line to the history of a run that this batch has changed.
    pub fn append(&mut self, id: RunId, kind: EventKind) {
        let entry = self.cache.get_mut(id).expect("a changed run is known");
        entry.aggregate.absorb(self.now, &kind);
        let event = Event { seq: entry.aggregate.last_seq, at: self.now, kind, payload: None };
        let namespace = entry.aggregate.run.namespace.clone();
        self.events.push(EventRow { namespace, run: id, event });
    }

    /// Refuses what servers of the version before would not understand, until the database allows it.
    fn may_be_written(&self, change: &Change) -> Result<(), Rejection> {
        let new = |(kind, _): &&(EventKind, Option<Payload>)| kind.level() > self.kinds_level;
        let Some((kind, _)) = change.events.iter().find(new) else { return Ok(()) };
        let (name, level) = (kind.name(), kind.level());
        let why = format!(
            "event {name} is of level {level}, and the database allows level {} for as long as servers of \
             the version \
             before may share it",
            self.kinds_level
        );
        Err(Rejection::NotStorable { why })
    }

    /// Takes a decision over: the row, the history, and what others must hear of it.
    fn take(&mut self, command: &Command, change: Change) -> Reply {
        let Change { run, events, reply, follow } = change;
        self.follow.extend(follow);
        if run.is_none() && events.is_empty() {
            return reply;
        }
        let id = command.run.id;
        self.certain.insert(id);
        self.listening.before(id, self.cache);
        let before = match (&command.act, run) {
            (Act::Start(start), run) => {
                let run = run.expect("a start that changes something makes a run");
                if !run.labels.is_empty() {
                    self.relabelled.insert(id);
                }
                if run.options.scheduled.is_some() {
                    self.touched.going.push(id);
                }
                self.cache.insert(Aggregate::new(run, 0), Some(start.input.clone()));
                self.inserted.push(id);
                self.dirty.insert(id);
                self.touched.rows.push(id);
                None
            }
            (_, None) => None,
            (_, Some(run)) => {
                let entry = self.cache.get_mut(id).expect("a decided run is known");
                if self.dirty.insert(id) {
                    self.updated.push(id);
                    self.touched.rows.push(id);
                }
                Some(std::mem::replace(&mut entry.aggregate.run, run))
            }
        };
        let generation_before = before.as_ref().map_or(1, |before| before.first_seq);
        if let Some(before) = before {
            self.note(command, &before, &events);
        }
        let entry = self.cache.get_mut(id).expect("a decided run is known");
        let asked = questions(&entry.aggregate);
        for (kind, payload) in events {
            entry.aggregate.absorb(self.now, &kind);
            if let (EventKind::SignalReceived { channel, .. }, Some(lease)) =
                (&kind, entry.aggregate.run.lease())
            {
                let (worker, epoch, channel) = (lease.worker, entry.aggregate.run.epoch, channel.clone());
                let notice = SignalNotice { worker, run: id, epoch, channel };
                // One is enough for many signals: whoever hears of it asks for all of them.
                if !self.touched.notices.contains(&notice) {
                    self.touched.notices.push(notice);
                }
            }
            // Only a run that was ever told something answers anybody.
            if entry.aggregate.mail.is_some()
                && let EventKind::StepCompleted { step, .. } = &kind
                && step.starts_with(REPLY)
            {
                self.touched.replied.push(id);
            }
            if let EventKind::RunContinued { generation, unread, .. } = &kind {
                entry.give_input(payload.clone());
                let mut kept: Vec<u64> = unread.iter().map(|signal| signal.received).collect();
                kept.sort_unstable();
                self.continued.push(Continued {
                    run: command.run.clone(),
                    generation: *generation,
                    first_seq: entry.aggregate.last_seq,
                    below: generation_before,
                    kept,
                });
            }
            entry.aggregate.weigh(&kind, payload.as_ref().map_or(0, |payload| payload.data.len() as u64));
            let event = Event { seq: entry.aggregate.last_seq, at: self.now, kind, payload };
            let namespace = entry.aggregate.run.namespace.clone();
            self.events.push(EventRow { namespace, run: id, event });
        }
        self.listening.after(id, &entry.aggregate);
        if !asked.is_empty() || entry.aggregate.mail.is_some() {
            asking::note(command, asked, &entry.aggregate, &mut self.asking);
        }
        reply
    }

    /// Remembers what somebody outside waits for.
    fn note(&mut self, command: &Command, before: &Run, events: &[(EventKind, Option<Payload>)]) {
        let after = &self.cache.get(before.id).expect("a decided run is known").aggregate.run;
        let moved = before.labels != after.labels || before.finished_at != after.finished_at;
        if moved && !after.labels.is_empty() {
            self.relabelled.insert(after.id);
        }
        if let Act::Report { report: Report::Release(released), .. } = &command.act {
            log_release(after, &released.why);
        }
        let is_paused = |run: &Run| matches!(run.state, State::Paused { .. });
        if is_paused(after) && !is_paused(before) {
            self.touched.paused.push(after.id);
        }
        let ended = after.state.finished() && !before.state.finished();
        if before.state.finished() && !after.state.finished() && after.options.scheduled.is_some() {
            self.touched.going.push(after.id);
        }
        if after.needs_handler() && !before.needs_handler() && after.options.handler_of.is_none() {
            self.failed.push(after.id);
        }
        match (before.lease(), after.lease()) {
            (None, Some(lease)) => {
                let (worker, run, key) = (lease.worker, after.id, QueueKey::of(after));
                let began = LeaseMove { worker, run, key, begun: true, completed: false, failed: false };
                self.touched.leases.push(began);
            }
            (Some(lease), None) => {
                let (completed, failed) =
                    (matches!(after.state, State::Completed), matches!(after.state, State::Failed { .. }));
                let (worker, run, key) = (lease.worker, after.id, QueueKey::of(after));
                self.touched.leases.push(LeaseMove { worker, run, key, begun: false, completed, failed });
                if let Some(why) = command.act.takes_lease() {
                    self.touched.lost.push(LostLease {
                        worker: lease.worker,
                        run: after.id,
                        epoch: before.epoch,
                        why: why.to_owned(),
                        cancelled: matches!(after.state, State::Cancelled { .. }),
                    });
                }
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        if ended {
            let output = events
                .iter()
                .find(|(kind, _)| matches!(kind, EventKind::RunCompleted))
                .and_then(|(_, payload)| payload.clone());
            self.touched.finished.push(Finished { run: after.clone(), output });
        }
    }

    /// The rows and events so far, to be written; the fold goes on.
    pub fn drain(&mut self) -> WriteSet {
        let row = |id: RunId, cache: &mut Cache| {
            let run = &mut cache.get_mut(id).expect("a dirty run is known").aggregate.run;
            run.version += 1;
            run.clone()
        };
        let (subscribed, unsubscribed) = self.listening.drain(self.cache);
        let labels = self.relabelled.drain().flat_map(|id| label_rows(id, self.cache)).collect();
        let set = WriteSet {
            unnamed: std::mem::take(&mut self.unnamed),
            inserted: self.inserted.drain(..).map(|id| row(id, self.cache)).collect(),
            updated: self.updated.drain(..).map(|id| row(id, self.cache)).collect(),
            events: std::mem::take(&mut self.events),
            continued: std::mem::take(&mut self.continued),
            labels,
            subscribed,
            unsubscribed,
            ..WriteSet::default()
        };
        self.dirty.clear();
        set
    }
}

/// Whether a refusal means that a worker wrote under a lease it no longer has.
pub fn stale_write(command: &Command, rejection: &Rejection) -> bool {
    command.act.is_report() && rejection.lease_lost()
}
