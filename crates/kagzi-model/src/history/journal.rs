//! The journal of a run, as replay needs it.

mod scopes;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{JournalEntry, JournalState, Projection, Sources, is_scope, project};
use crate::{
    Event, EventKind, Failure, Finality, Name, Payload, RunId, Timestamp, child_channel, codes::CHILD_CLOSED,
    only_told, promise_channel,
};

/// The journal in the order in which the steps were first recorded.
pub fn journal(events: &[Event]) -> Vec<JournalEntry> {
    project::<Journal>(events).into_entries()
}

/// A journal in the making: events are taken in one after the other, and it may go on later where it stopped.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// The input of the run, once its first event was taken in.
    input: Option<Payload>,
    last_seq: u64,
    bytes: usize,
    /// Forgotten ones keep their place and are left out in the end.
    entries: Vec<Option<Told>>,
    told: u32,
    index: HashMap<Name, usize>,
    /// Every wait for a signal: its channel, its time, and the event that holds what it has taken.
    waits: HashMap<Name, (Name, Option<Timestamp>, Option<u64>)>,
    /// The channels of promises that demand signs of life, and when each is over.
    watched: HashMap<Name, Option<Timestamp>>,
    /// Signals that no wait has taken, by the number of their event.
    unread: BTreeMap<u64, (Name, Payload)>,
    /// Those of them that lie before this generation: their payloads are needed once a wait takes them.
    carried: HashSet<u64>,
    /// Children that were told to end because the run had ended.
    closed: HashSet<RunId>,
    /// How many scopes were recorded as one, and how many entries were left when what lies in them was last
    /// cleared away.
    scopes: u32,
    kept: usize,
    /// Events of an outline whose payloads are needed: of a step, or of none: the input, a signal
    /// that no wait has taken.
    missing: BTreeMap<u64, Option<Name>>,
}

/// About what an entry weighs beside its payloads.
const ENTRY_BYTES: usize = 256;

/// An entry, and how much the function had been told of when it was first heard of.
#[derive(Debug, Clone)]
struct Told {
    entry: JournalEntry,
    after: u32,
}

impl Projection for Journal {
    fn absorb(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.bytes += event.payload.as_ref().map_or(0, |payload| payload.data.len());
        match &event.kind {
            EventKind::StepProgressed { step, position, .. } => {
                let entry = self.entry(step, *position, JournalState::Begun);
                let source = entry.sources.progress.replace(event.seq);
                let former = std::mem::replace(&mut entry.progress, event.payload.clone());
                self.drop_payload(source, former);
                self.note_missing(event, Some(step));
            }
            EventKind::StepCompleted { step, position, attempt, .. } => {
                let result = event.payload.clone().unwrap_or_else(|| Payload::new(&b""[..]));
                let entry = self.set(step, *position, *attempt, JournalState::Completed { result });
                entry.sources.result = Some(event.seq);
                // How far it was is of no use to anybody any more.
                let (source, former) = (entry.sources.progress.take(), entry.progress.take());
                self.drop_payload(source, former);
                self.note_missing(event, Some(step));
                self.tell(step);
                if is_scope(step) {
                    self.end_scope();
                }
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, finality, .. } => {
                let failure = failure.clone();
                let state = match retry_at {
                    Some(at) => JournalState::Retry { at: *at, failure },
                    None => {
                        let finality = finality.unwrap_or(Finality::Exhausted);
                        JournalState::Failed { failure, finality }
                    }
                };
                self.set(step, *position, *attempt, state);
                if retry_at.is_none() {
                    self.tell(step);
                }
            }
            EventKind::SleepScheduled { step, position, until } => {
                self.set(step, *position, 0, JournalState::Sleeping { until: *until });
            }
            EventKind::SleepOver { step } => self.wake(event.at, step),
            EventKind::SignalReceived { channel, .. } => {
                let signal = event.payload.clone().unwrap_or_else(|| Payload::new(&b""[..]));
                self.unread.insert(event.seq, (channel.clone(), signal));
                self.note_missing(event, None);
            }
            EventKind::WaitBegan { step, position, channel, until } => {
                let (channel, until) = (channel.clone(), *until);
                self.waits.insert(step.clone(), (channel.clone(), until, None));
                self.set(step, *position, 0, JournalState::Waiting { channel, until, is_there: false });
            }
            EventKind::WaitEnded { step, position, channel, id, received, failure, .. } => {
                let known = self.waits.entry(step.clone()).or_insert_with(|| (channel.clone(), None, None));
                known.2 = Some(received.unwrap_or(event.seq));
                let unread = received.and_then(|seq| self.unread.remove(&seq)).map(|(_, signal)| signal);
                let state = match failure.clone() {
                    Some(failure) => JournalState::Failed { failure, finality: Finality::Rejected },
                    None => {
                        let signal = unread.or_else(|| event.payload.clone());
                        let result = signal.unwrap_or_else(|| Payload::new(&b""[..]));
                        JournalState::Completed { result }
                    }
                };
                let source = received.unwrap_or(event.seq);
                if failure.is_none() {
                    self.set(step, *position, 1, state).sources.result = Some(source);
                    // The signal belongs to the step now; of one that is still missing, too.
                    if let Some(whose) = self.missing.get_mut(&source) {
                        *whose = Some(step.clone());
                    } else if received.is_none() {
                        self.note_missing(event, Some(step));
                    } else if self.carried.remove(&source) {
                        self.missing.insert(source, Some(step.clone()));
                    }
                } else {
                    self.set(step, *position, 1, state);
                    self.missing.remove(&source);
                }
                if let Some(entry) = self.find(step) {
                    entry.signal = Some(id.clone());
                }
                self.tell(step);
            }
            // Over without a value, like a wait whose time has come.
            EventKind::ChannelClosed { step, position, channel } => {
                self.waits.insert(step.clone(), (channel.clone(), None, None));
                self.set(step, *position, 1, JournalState::Slept);
                self.tell(step);
            }
            EventKind::LabelSet { step, position, .. } => {
                let result = Payload::new(&b""[..]);
                self.set(step, *position, 1, JournalState::Completed { result });
                self.tell(step);
            }
            EventKind::PromiseMade { step, position, name, until, heartbeat_ms, .. } => {
                let result = event.payload.clone().unwrap_or_else(|| Payload::new(&b""[..]));
                let entry = self.set(step, *position, 1, JournalState::Completed { result });
                entry.sources.result = Some(event.seq);
                self.note_missing(event, Some(step));
                if heartbeat_ms.is_some() {
                    self.watched.insert(promise_channel(name), *until);
                }
                self.tell(step);
            }
            EventKind::RunClaimed { slept, .. } => {
                slept.iter().for_each(|step| self.wake(event.at, step));
            }
            EventKind::ChildStarted { step, position, child, awaited, until, .. } => {
                let state = if *awaited {
                    let (channel, until) = (child_channel(*child), *until);
                    self.waits.insert(step.clone(), (channel.clone(), until, None));
                    JournalState::Waiting { channel, until, is_there: false }
                } else {
                    JournalState::Completed { result: Payload::new(&b""[..]) }
                };
                self.set(step, *position, u32::from(!*awaited), state).child = Some(*child);
                if !*awaited {
                    self.tell(step);
                }
            }
            EventKind::ChildrenClosed { children } => self.closed.extend(children),
            EventKind::RunResumed { .. } => self.retry_now(event.at),
            EventKind::RunRetried { forgives, .. } => {
                self.retry_now(event.at);
                self.forgive(event.at, forgives);
            }
            EventKind::RunReopened { forgives, .. } => {
                self.retry_now(event.at);
                self.forgive(event.at, forgives);
                self.forget_closed_children(event.at);
            }
            EventKind::RunStarted => {
                self.input = event.payload.clone();
                self.note_missing(event, None);
            }
            EventKind::RunContinued { unread, .. } => {
                let lie = unread
                    .iter()
                    .map(|signal| (signal.received, (signal.channel.clone(), Payload::new(&b""[..]))));
                *self = Journal {
                    input: event.payload.clone(),
                    last_seq: event.seq,
                    bytes: event.payload.as_ref().map_or(0, |payload| payload.data.len()),
                    unread: lie.collect(),
                    carried: unread.iter().map(|signal| signal.received).collect(),
                    ..Journal::default()
                };
                self.note_missing(event, None);
            }
            EventKind::StepClosed { step, .. } => self.take_out(step, event.at),
            EventKind::StepStarted { .. }
            | EventKind::PromiseBeat { .. }
            | EventKind::ValueSet { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
            | EventKind::HandlerStarted { .. }
            | only_told!()
            | EventKind::Unknown { .. } => {}
        }
    }
}

impl Journal {
    /// The sequence number of the last event that was taken in.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The input of the run.
    pub fn input(&self) -> Payload {
        self.input.clone().unwrap_or_else(|| Payload::new(&b""[..]))
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.entries.len() * ENTRY_BYTES
    }

    /// The entries in the order in which the steps were first recorded.
    pub fn entries(&self) -> Vec<JournalEntry> {
        self.walk().map(Cow::into_owned).collect()
    }

    /// The same one by one, and copied only where an entry is not what is kept of it.
    pub fn walk(&self) -> impl Iterator<Item = Cow<'_, JournalEntry>> {
        let told = self.entries.iter().flatten().filter(|told| !self.is_in_recorded_scope(&told.entry.path));
        told.map(|told| match &told.entry.state {
            JournalState::Waiting { .. } => Cow::Owned(self.with_mail(told.entry.clone())),
            JournalState::Begun
            | JournalState::Completed { .. }
            | JournalState::Failed { .. }
            | JournalState::Retry { .. }
            | JournalState::Sleeping { .. }
            | JournalState::Slept => Cow::Borrowed(&told.entry),
        })
    }

    /// The same, without copies.
    pub fn into_entries(mut self) -> Vec<JournalEntry> {
        if self.scopes > 0 {
            self.clear_scopes();
        }
        let entries = std::mem::take(&mut self.entries).into_iter().flatten();
        entries.map(|told| self.with_mail(told.entry)).collect()
    }

    /// A wait knows whether its signal has come meanwhile.
    fn with_mail(&self, mut entry: JournalEntry) -> JournalEntry {
        if let JournalState::Waiting { channel, is_there, .. } = &mut entry.state {
            *is_there = self.unread.values().any(|(unread, _)| unread == channel);
        }
        entry
    }

    /// The events whose payloads are needed and were not there.
    pub fn missing(&self) -> Vec<u64> {
        let needed =
            |whose: &Option<Name>| !whose.as_ref().is_some_and(|path| self.is_in_recorded_scope(path));
        self.missing.iter().filter(|(_, whose)| needed(whose)).map(|(seq, _)| *seq).collect()
    }

    /// Adds a payload that was not there.
    pub fn fill(&mut self, seq: u64, payload: Payload) {
        let Some(whose) = self.missing.remove(&seq) else { return };
        self.bytes += payload.data.len();
        let Some(path) = whose else {
            match self.unread.get_mut(&seq) {
                Some((_, signal)) => *signal = payload,
                None => self.input = Some(payload),
            }
            return;
        };
        let Some(entry) = self.find(&path) else { return };
        if entry.sources.progress == Some(seq) {
            entry.progress = Some(payload);
        } else if let JournalState::Completed { result } = &mut entry.state {
            *result = payload;
        }
    }

    fn note_missing(&mut self, event: &Event, step: Option<&Name>) {
        if event.payload.is_none() {
            self.missing.insert(event.seq, step.cloned());
        }
    }

    /// A payload is replaced or of no use any more.
    fn drop_payload(&mut self, source: Option<u64>, payload: Option<Payload>) {
        self.bytes -= payload.map_or(0, |payload| payload.data.len());
        source.map(|seq| self.missing.remove(&seq));
    }

    fn find(&mut self, path: &Name) -> Option<&mut JournalEntry> {
        let at = *self.index.get(path)?;
        self.entries[at].as_mut().map(|told| &mut told.entry)
    }

    /// The function was told that the step has ended for good.
    fn tell(&mut self, path: &Name) {
        let next = self.told + 1;
        if let Some(entry) = self.find(path).filter(|entry| entry.order == 0) {
            entry.order = next;
            self.told = next;
        }
    }

    fn entry(&mut self, path: &Name, position: u32, state: JournalState) -> &mut JournalEntry {
        let at = *self.index.entry(path.clone()).or_insert_with(|| {
            let path = path.clone();
            let sources = Sources::default();
            let entry = JournalEntry {
                path,
                position,
                attempts: 0,
                state,
                order: 0,
                progress: None,
                silent: false,
                signal: None,
                child: None,
                sources,
            };
            self.entries.push(Some(Told { entry, after: self.told }));
            self.entries.len() - 1
        });
        &mut self.entries[at].as_mut().expect("what was forgotten is not in the index").entry
    }

    fn set(&mut self, path: &Name, position: u32, attempts: u32, state: JournalState) -> &mut JournalEntry {
        let entry = self.entry(path, position, state.clone());
        (entry.position, entry.attempts, entry.state) = (position, attempts, state);
        entry
    }

    fn wake(&mut self, at: Timestamp, path: &Name) {
        let promise = self.waits.get(path).and_then(|(channel, ..)| self.watched.get(channel));
        let silent = promise.is_some_and(|until| until.is_none_or(|until| until > at));
        if let Some(entry) = self.find(path) {
            entry.silent = silent;
            entry.state = JournalState::Slept;
            self.tell(path);
        }
    }

    /// The code dropped the step before it heard of its end: a replay does not tell of it either. A result is
    /// never taken out, so what is completed here is a label, and that is set anew.
    fn take_out(&mut self, path: &Name, at: Timestamp) {
        let told = self.told;
        let mut wait = self.waits.get(path).cloned();
        let Some(entry) = self.find(path).filter(|entry| entry.order > 0 && entry.order == told) else {
            return;
        };
        entry.order = 0;
        if let Some((channel, until, took)) = wait.take() {
            let until = if took.is_some() { until } else { until.map(|_| at) };
            let state = JournalState::Waiting { channel: channel.clone(), until, is_there: false };
            let former = std::mem::replace(&mut entry.state, state);
            (entry.sources.result, entry.signal, entry.silent) = (None, None, false);
            if let Some(seq) = took {
                if let Some(whose) = self.missing.get_mut(&seq) {
                    *whose = None;
                }
                let signal = match former {
                    JournalState::Completed { result } => result,
                    _ => Payload::new(&b""[..]),
                };
                self.unread.insert(seq, (channel, signal));
            }
            self.told -= 1;
            return;
        }
        match &entry.state {
            JournalState::Failed { failure, .. } => {
                entry.state = JournalState::Retry { at, failure: failure.clone() };
            }
            JournalState::Slept => entry.state = JournalState::Sleeping { until: at },
            JournalState::Completed { .. } => {
                if let Some(place) = self.index.remove(path) {
                    self.entries[place] = None;
                }
            }
            JournalState::Begun
            | JournalState::Retry { .. }
            | JournalState::Sleeping { .. }
            | JournalState::Waiting { .. } => {}
        }
        self.told -= 1;
    }

    /// Steps that wait for children which were closed begin anew, with other children.
    fn forget_closed_children(&mut self, at: Timestamp) {
        for told in self.entries.iter_mut().flatten() {
            let entry = &mut told.entry;
            if let (JournalState::Waiting { .. }, Some(child)) = (&entry.state, entry.child)
                && self.closed.contains(&child)
            {
                let failure = Failure::new(CHILD_CLOSED, "its child was closed when the run ended");
                entry.state = JournalState::Retry { at, failure };
            }
        }
    }

    /// Somebody said "now": whatever waits for its retry may begin at once.
    fn retry_now(&mut self, now: Timestamp) {
        for told in self.entries.iter_mut().flatten() {
            if let JournalState::Retry { at, .. } = &mut told.entry.state {
                *at = (*at).min(now);
            }
        }
    }

    /// The named steps begin anew. What was begun only because they had failed, and has not ended, is
    /// forgotten: the code may never come by there again.
    fn forgive(&mut self, now: Timestamp, forgives: &[Name]) {
        let orders: Vec<u32> =
            forgives.iter().filter_map(|path| self.find(path).map(|entry| entry.order)).collect();
        let Some(earliest) = orders.into_iter().min() else { return };
        for told in &mut self.entries {
            if let Some(Told { entry, after }) = told
                && *after >= earliest
                && !entry.state.is_over()
            {
                self.index.remove(&entry.path);
                *told = None;
            }
        }
        self.told = earliest.saturating_sub(1);
        for path in forgives {
            if let Some(entry) = self.find(path)
                && let JournalState::Failed { failure, .. } = &entry.state
            {
                entry.state = JournalState::Retry { at: now, failure: failure.clone() };
                entry.order = 0;
            }
        }
    }
}
