//! What others told a run: signals that no wait has taken yet, which were told before, and which waits are
//! open on which channel. A run that was never told anything and never waited for it has none of this.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{Failure, Name};

/// The mail of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mail {
    channels: HashMap<Name, Channel>,
    /// Signals that no wait has taken, on all channels together.
    unread_len: usize,
    /// The event that holds what a wait has taken.
    taken: HashMap<Name, u64>,
    /// Steps that waited for a signal, or still do.
    waits: HashSet<Name>,
    /// Waits that closed their channel instead.
    last_calls: HashSet<Name>,
}

/// One channel: a name in one run on which signals come.
#[derive(Debug, Clone, Default, PartialEq)]
struct Channel {
    /// In the order in which they came.
    unread: VecDeque<Unread>,
    /// Ids that came before, taken or not.
    seen: HashSet<Name>,
    /// Steps that wait, oldest first. Some may have ended meanwhile: whoever asks looks again.
    waiting: VecDeque<Name>,
    closed: bool,
}

/// A signal that waits for a wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// The event that holds it.
    pub seq: u64,
    pub id: Name,
    /// It says that what is waited for has failed.
    pub failure: Option<Failure>,
}

impl Mail {
    /// A signal with this id came before on this channel.
    pub fn was_told(&self, channel: &Name, id: &Name) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.seen.contains(id))
    }

    /// Nothing more is taken on this channel: the code has said so.
    pub fn is_closed(&self, channel: &Name) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.closed)
    }

    /// The next signal on this channel.
    pub fn next(&self, channel: &Name) -> Option<&Unread> {
        self.channels.get(channel)?.unread.front()
    }

    /// Signals that no wait has taken.
    pub fn unread_len(&self) -> usize {
        self.unread_len
    }

    /// The channels with such signals, and how many each has.
    pub fn unread(&self) -> impl Iterator<Item = (&Name, usize)> {
        let lengths = self.channels.iter().map(|(name, channel)| (name, channel.unread.len()));
        lengths.filter(|(_, len)| *len > 0)
    }

    /// The steps that wait on this channel or did so, oldest first.
    pub fn waiting(&self, channel: &Name) -> impl Iterator<Item = &Name> {
        self.channels.get(channel).into_iter().flat_map(|channel| &channel.waiting)
    }

    /// The event that holds what this wait has taken.
    pub fn taken(&self, step: &Name) -> Option<u64> {
        self.taken.get(step).copied()
    }

    pub(crate) fn receive(&mut self, channel: &Name, signal: Unread) {
        let channel = self.channels.entry(channel.clone()).or_default();
        channel.seen.insert(signal.id.clone());
        channel.unread.push_back(signal);
        self.unread_len += 1;
    }

    /// The step is a wait for a signal.
    pub fn is_wait(&self, step: &Name) -> bool {
        self.waits.contains(step) || self.taken.contains_key(step) || self.last_calls.contains(step)
    }

    pub(crate) fn wait(&mut self, channel: &Name, step: &Name) {
        self.waits.insert(step.clone());
        let channel = self.channels.entry(channel.clone()).or_default();
        if !channel.waiting.contains(step) {
            channel.waiting.push_back(step.clone());
        }
    }

    /// A wait took the signal with this id, which event `seq` holds.
    pub(crate) fn take(&mut self, step: &Name, channel: &Name, id: &Name, seq: u64) {
        let channel = self.channels.entry(channel.clone()).or_default();
        channel.seen.insert(id.clone());
        channel.waiting.retain(|waiting| waiting != step);
        if let Some(at) = channel.unread.iter().position(|unread| unread.seq == seq) {
            channel.unread.remove(at);
            self.unread_len -= 1;
        }
        self.taken.insert(step.clone(), seq);
    }

    /// The step waits no longer, because of its time or because the code has dropped it.
    pub(crate) fn leave(&mut self, channel: &Name, step: &Name) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.waiting.retain(|waiting| waiting != step);
        }
    }

    /// This wait found nothing and closed its channel, or found it closed.
    pub fn was_last_call(&self, step: &Name) -> bool {
        self.last_calls.contains(step)
    }

    pub(crate) fn close(&mut self, step: &Name, channel: &Name) {
        self.last_calls.insert(step.clone());
        self.channels.entry(channel.clone()).or_default().closed = true;
    }
}
