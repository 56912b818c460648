//! What every history must keep of signals, waits, children and events (I14 to I16, I18), judged apart from
//! how decisions know it: for `kagzi verify`, and for tests that look at what a crash has left behind.
//!
//! The events of the living generation are seen one after the other; then the run's row says where it stands,
//! and the two must agree. Kinds that say nothing of signals, waits and children are passed over.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{Event, EventKind, Name, RunId, State, Timestamp, Wake, child_of, codes, is_event_channel};

/// A signal counts once on its channel.
const ONCE: &str = "I14 a signal counts once on its channel";
/// A signal that a wait took was there, and was the next one.
const TAKEN: &str = "I14 a signal is taken once, in its turn, and by one wait";
const REFUSED: &str = "I14 a closed channel takes nothing";
const OPEN: &str = "I15 a run that waits for somebody has an open wait";
const MISSED: &str = "I15 nothing lies there for an open wait of a parked run";
const SLEPT_ON: &str = "I15 a run goes on when what it waits for has come";
/// The places of the events that a run hears of only rise, topic by topic.
const HEARD: &str = "I18 a run hears of the events of a topic in their order, and of each once";
const ONE_CHILD: &str = "I16 a step has one child";

/// What was seen of one generation.
#[derive(Debug, Default)]
pub struct Audit {
    /// Channel and id of every signal that was ever told, or that the generation knows of.
    came: HashSet<(Name, Name)>,
    /// By channel, in order: the event that holds it, and its id.
    unread: HashMap<Name, VecDeque<(u64, Name)>>,
    /// What was taken on channels of the engine's own, where it may be told again.
    told: HashSet<(Name, u64)>,
    /// Closed channels, and the step that closed each; none where an earlier generation did.
    closed: HashMap<Name, Option<Name>>,
    waits: HashMap<Name, Waits>,
    by_step: HashMap<Name, RunId>,
    children: HashMap<RunId, AuditedChild>,
    parked: Option<Since>,
    /// Up to which place the run has heard of each topic, by channel; and of those that are not listed.
    heard: HashMap<Name, Timestamp>,
    heard_others: Option<Timestamp>,
    broken: Vec<&'static str>,
}

/// A step that waits for somebody, or did.
#[derive(Debug)]
struct Waits {
    channel: Name,
    stands: Stands,
}

#[derive(Debug)]
enum Stands {
    Open,
    /// The code does not wait for it any more.
    Dropped,
    /// The event that holds what it took, and its id.
    Took(u64, Name),
    /// It is over without a signal.
    Over,
}

/// What has ended since the run was parked.
#[derive(Debug, Default)]
struct Since {
    wake: Wake,
    ended: usize,
    failed: bool,
}

/// What a run's history says of one of its children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditedChild {
    /// The run was told how it ended.
    pub heard: bool,
    /// What it was told is that the child could not be started.
    pub not_started: bool,
    /// It was told to end because the run had ended.
    pub dismissed: bool,
}

impl Audit {
    /// Takes in the next event.
    pub fn see(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunContinued { taken, unread, closed, children, heard, heard_others, .. } => {
                // Of what came before, rows are missing, and nobody asks for the others any more.
                *self = Audit::default();
                self.came.extend(taken.iter().map(|signal| (signal.channel.clone(), signal.id.clone())));
                for signal in unread {
                    if !is_event_channel(&signal.channel) {
                        self.come(&signal.channel, &signal.id);
                    }
                    let lies = self.unread.entry(signal.channel.clone()).or_default();
                    lies.push_back((signal.received, signal.id.clone()));
                }
                self.heard.extend(heard.iter().map(|topic| (topic.channel.clone(), topic.until)));
                self.heard_others = *heard_others;
                self.closed.extend(closed.iter().map(|channel| (channel.clone(), None)));
                self.children.extend(children.iter().map(|child| (child.run, AuditedChild::default())));
            }
            EventKind::SignalReceived { channel, id, failure, published } => {
                self.come_or_hear(channel, id, *published);
                if self.closed.contains_key(channel) {
                    self.broken.push(REFUSED);
                }
                self.hear(channel, failure.as_ref().map(|failure| &failure.code));
                self.unread.entry(channel.clone()).or_default().push_back((event.seq, id.clone()));
            }
            EventKind::WaitBegan { step, channel, .. } => self.wait(step, channel),
            EventKind::ChildStarted { step, child, awaited, .. } => {
                let former = self.by_step.insert(step.clone(), *child);
                if former.is_some() || self.children.insert(*child, AuditedChild::default()).is_some() {
                    self.broken.push(ONE_CHILD);
                }
                if *awaited {
                    self.wait(step, &crate::child_channel(*child));
                }
            }
            EventKind::WaitEnded { step, channel, id, received, failure, published, .. } => {
                self.hear(channel, failure.as_ref().map(|failure| &failure.code));
                self.take(step, channel, id, (event.seq, *received), *published);
                if let Some(parked) = &mut self.parked {
                    parked.ended += 1;
                    parked.failed |= failure.is_some();
                }
            }
            EventKind::ChannelClosed { step, channel, .. } => {
                self.stand(step, channel, Stands::Over);
                self.closed.entry(channel.clone()).or_insert_with(|| Some(step.clone()));
            }
            EventKind::SleepOver { step } => self.over(step),
            EventKind::RunClaimed { slept, .. } => {
                self.parked = None;
                slept.iter().for_each(|step| self.over(step));
            }
            EventKind::RunParked { closes, opens, wake, .. } => {
                closes.iter().for_each(|step| self.drop(step));
                for step in opens {
                    if let Some(waits) = self.waits.get_mut(step) {
                        waits.stands = Stands::Open;
                    }
                }
                self.parked = Some(Since { wake: wake.unwrap_or_default(), ..Since::default() });
            }
            EventKind::StepClosed { step, .. } => self.drop(step),
            EventKind::RunRetried { forgives, .. } => self.forgive(forgives),
            EventKind::RunReopened { forgives, .. } => {
                self.forgive(forgives);
                let children = &self.children;
                let dismissed = |child: &RunId| children.get(child).is_some_and(|child| child.dismissed);
                self.by_step.retain(|_, child| !dismissed(child));
            }
            EventKind::ChildrenClosed { children } => {
                for child in children {
                    self.children.entry(*child).or_default().dismissed = true;
                }
            }
            _ => {}
        }
    }

    /// What is broken, by its name, given where the run's row says that it stands.
    pub fn complaints(&self, state: &State) -> Vec<&'static str> {
        let mut broken = self.broken.clone();
        if let Some(parked) = state.parked()
            && let Some(channel) = parked.wait.channel()
        {
            let is_open = |waits: &&Waits| matches!(waits.stands, Stands::Open);
            let open: Vec<&Waits> = self.waits.values().filter(is_open).collect();
            let shown = parked.step.as_ref().and_then(|step| self.waits.get(step)).filter(is_open);
            // A run that goes on with the last of them leaves its row alone when the first has ended.
            let is_shown = parked.wake != Wake::First || shown.is_some_and(|waits| waits.channel == *channel);
            if open.is_empty() || !is_shown {
                broken.push(OPEN);
            }
            let lies = |waits: &&Waits| self.unread.get(&waits.channel).is_some_and(|lie| !lie.is_empty());
            if open.iter().any(lies) {
                broken.push(MISSED);
            }
            let woken = |since: &Since| since.ended > 0 && since.wake.is_reached(since.failed, open.len());
            if self.parked.as_ref().is_none_or(woken) {
                broken.push(SLEPT_ON);
            }
        }
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// The children that the generation knows of, and what it knows of each.
    pub fn children(&self) -> &HashMap<RunId, AuditedChild> {
        &self.children
    }

    fn come(&mut self, channel: &Name, id: &Name) {
        if !self.came.insert((channel.clone(), id.clone())) {
            self.broken.push(ONCE);
        }
    }

    /// A signal counts once by its id, an event by its place on its topic: its id is free again when it has
    /// expired.
    fn come_or_hear(&mut self, channel: &Name, id: &Name, published: Option<Timestamp>) {
        let Some(published) = published else { return self.come(channel, id) };
        let former = self.heard.insert(channel.clone(), published).max(self.heard_others);
        if former.is_some_and(|former| former >= published) {
            self.broken.push(HEARD);
        }
    }

    /// What is told on a child's channel is its end.
    fn hear(&mut self, channel: &Name, code: Option<&Name>) {
        if let Some(child) = child_of(channel) {
            let child = self.children.entry(child).or_default();
            (child.heard, child.not_started) =
                (true, code.is_some_and(|code| **code == *codes::CHILD_NOT_STARTED));
        }
    }

    fn wait(&mut self, step: &Name, channel: &Name) {
        self.stand(step, channel, Stands::Open);
    }

    fn stand(&mut self, step: &Name, channel: &Name, stands: Stands) {
        self.waits.insert(step.clone(), Waits { channel: channel.clone(), stands });
    }

    fn over(&mut self, step: &Name) {
        if let Some(waits) = self.waits.get_mut(step) {
            waits.stands = Stands::Over;
        }
    }

    /// A wait took a signal: one that lay there, or one that comes with this very event.
    fn take(
        &mut self,
        step: &Name,
        channel: &Name,
        id: &Name,
        (seq, received): (u64, Option<u64>),
        published: Option<Timestamp>,
    ) {
        if matches!(self.waits.get(step), Some(Waits { stands: Stands::Took(..), .. })) {
            self.broken.push(TAKEN);
        }
        let lies = self.unread.entry(channel.clone()).or_default();
        match received {
            None => self.come_or_hear(channel, id, published),
            Some(held) if lies.front() == Some(&(held, id.clone())) => drop(lies.pop_front()),
            // A child ends once and a promise fails once: whoever asks after a retry is told the same again.
            Some(held) if channel.starts_with('~') && self.told.contains(&(channel.clone(), held)) => {}
            Some(_) => self.broken.push(TAKEN),
        }
        let held = received.unwrap_or(seq);
        self.told.insert((channel.clone(), held));
        self.stand(step, channel, Stands::Took(held, id.clone()));
    }

    /// The code dropped a wait. What it took and the code never heard of lies in front of its channel again,
    /// and a channel that it closed is open.
    fn drop(&mut self, step: &Name) {
        let Some(waits) = self.waits.get_mut(step) else { return };
        if let Stands::Took(held, id) = std::mem::replace(&mut waits.stands, Stands::Dropped) {
            self.unread.entry(waits.channel.clone()).or_default().push_front((held, id));
        }
        if self.closed.get(&waits.channel).is_some_and(|by| by.as_ref() == Some(step)) {
            self.closed.remove(&waits.channel);
        }
    }

    /// Steps that begin anew.
    fn forgive(&mut self, steps: &[Name]) {
        for step in steps {
            self.waits.remove(step);
            self.by_step.remove(step);
        }
    }
}
