//! What others told a run: signals that no wait has taken yet, which were told before, and which waits are
//! open on which channel. A run that was never told anything and never waited for it has none of this.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Failure, Name, PROMISE_CHANNEL, Promise, Timestamp,
    intervention::is_person_channel,
    is_child_channel, is_event_channel,
    limits::{ENDS_KEPT, TAKEN_KEPT},
};

/// How the paths of steps begin that are answers to somebody's requests.
pub const REPLY: &str = "~reply/";

/// The mail of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mail {
    channels: HashMap<Name, Channel>,
    /// Signals that no wait has taken, on all channels that others may use together.
    unread_len: usize,
    /// Every step that waited for a signal, or still does.
    waits: HashMap<Name, Known>,
    /// By name.
    pub(crate) promises: HashMap<Name, Promise>,
    /// How often the code has set each of its values, by name.
    values: HashMap<Name, u64>,
    /// A step has waited for an event.
    waited_for_events: bool,
    /// Up to which event of its topic each channel has heard.
    heard: HashMap<Name, Timestamp>,
    /// The same for channels that earlier generations heard on and that are not listed any more.
    heard_others: Option<Timestamp>,
    /// The steps that wait for a person, each with the id of its question.
    pub(crate) questions: HashMap<Name, Uuid>,
}

/// What is known of a wait.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    channel: Name,
    until: Option<Timestamp>,
    /// What it has taken.
    took: Option<Unread>,
    /// It found nothing and closed its channel, or found it closed.
    closed: bool,
}

/// One channel: a name in one run on which signals come.
#[derive(Debug, Clone, Default, PartialEq)]
struct Channel {
    /// In the order in which they came.
    unread: VecDeque<Unread>,
    /// Ids that came before, taken or not, each with a number by which they are in order.
    seen: HashMap<Name, u64>,
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

/// A signal that a wait took before its run continued in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenSignal {
    pub channel: Name,
    pub id: Name,
}

/// A signal that its run takes along when it continues in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnreadSignal {
    pub channel: Name,
    pub id: Name,
    /// The event that holds it.
    pub received: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Up to which event of a topic a run has heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardTopic {
    pub channel: Name,
    pub until: Timestamp,
}

/// What a run takes along of its mail.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Carried {
    /// The latest ones, in the order in which they came.
    pub taken: Vec<TakenSignal>,
    /// Channel by channel, each in its order.
    pub unread: Vec<UnreadSignal>,
    pub closed: Vec<Name>,
    /// The latest ones, and up to where all others have heard at most.
    pub heard: Vec<HeardTopic>,
    pub heard_others: Option<Timestamp>,
}

/// The ends of children go along, because the next generation may ask for them by the children's ids, and so
/// do events that were told and not taken. Those that nobody ever asks for must not add up: only the latest
/// ones stay.
fn forget_old_ends(unread: &mut Vec<UnreadSignal>) {
    let is_engines =
        |signal: &UnreadSignal| is_child_channel(&signal.channel) || is_event_channel(&signal.channel);
    let mut ends: Vec<u64> =
        unread.iter().filter(|signal| is_engines(signal)).map(|signal| signal.received).collect();
    ends.sort_unstable();
    let Some(oldest) = ends.len().checked_sub(ENDS_KEPT).map(|from| ends[from]) else { return };
    unread.retain(|signal| !is_engines(signal) || signal.received >= oldest);
}

impl Mail {
    /// What the next generation of the run is given. Waits are not among it: they belong to code that has
    /// ended.
    pub fn carried(&self) -> Carried {
        // A promise belongs to the code that made it: the next generation may make one of the same name.
        // So does a question to a person.
        let is_own = |name: &&Name| !name.starts_with(PROMISE_CHANNEL) && !is_person_channel(name);
        let mut names: Vec<&Name> = self.channels.keys().filter(is_own).collect();
        names.sort_unstable();
        let (mut taken, mut carried) = (Vec::new(), Carried::default());
        for name in names {
            let channel = &self.channels[name];
            if channel.closed {
                carried.closed.push(name.clone());
            }
            carried.unread.extend(channel.unread.iter().map(|signal| UnreadSignal {
                channel: name.clone(),
                id: signal.id.clone(),
                received: signal.seq,
                failure: signal.failure.clone(),
            }));
            let lies: HashSet<&Name> = channel.unread.iter().map(|signal| &signal.id).collect();
            let read = channel.seen.iter().filter(|(id, _)| !lies.contains(id));
            taken.extend(read.map(|(id, number)| (*number, name, id)));
        }
        forget_old_ends(&mut carried.unread);
        // Of events the place on their topic says enough.
        taken.retain(|(_, channel, _)| !is_child_channel(channel) && !is_event_channel(channel));
        taken.sort_unstable();
        let latest = taken.split_off(taken.len().saturating_sub(TAKEN_KEPT));
        let signal =
            |(_, channel, id): (u64, &Name, &Name)| TakenSignal { channel: channel.clone(), id: id.clone() };
        carried.taken = latest.into_iter().map(signal).collect();
        (carried.heard, carried.heard_others) = self.heard_last();
        carried
    }

    /// The topics that were heard of last, and up to where all others were heard at most: whatever is left
    /// out is never heard twice.
    fn heard_last(&self) -> (Vec<HeardTopic>, Option<Timestamp>) {
        let mut heard: Vec<(Timestamp, &Name)> =
            self.heard.iter().map(|(channel, until)| (*until, channel)).collect();
        heard.sort_unstable();
        let latest = heard.split_off(heard.len().saturating_sub(TAKEN_KEPT));
        let others = heard.last().map(|(until, _)| *until).max(self.heard_others);
        let topic = |(until, channel): (Timestamp, &Name)| HeardTopic { channel: channel.clone(), until };
        (latest.into_iter().map(topic).collect(), others)
    }

    /// The mail of a generation that begins; none where there is nothing to begin with.
    pub fn beginning(
        taken: &[TakenSignal],
        unread: &[UnreadSignal],
        closed: &[Name],
        heard: &[HeardTopic],
        heard_others: Option<Timestamp>,
    ) -> Option<Box<Mail>> {
        let is_silent = heard.is_empty() && heard_others.is_none();
        if taken.is_empty() && unread.is_empty() && closed.is_empty() && is_silent {
            return None;
        }
        let mut mail = Box::<Mail>::default();
        mail.heard = heard.iter().map(|topic| (topic.channel.clone(), topic.until)).collect();
        mail.heard_others = heard_others;
        // Each of them was an event before this generation, so these numbers are below all that follow.
        for (number, TakenSignal { channel, id }) in (1..).zip(taken) {
            mail.channels.entry(channel.clone()).or_default().seen.insert(id.clone(), number);
        }
        for UnreadSignal { channel, id, received, failure } in unread {
            mail.receive(channel, Unread { seq: *received, id: id.clone(), failure: failure.clone() });
        }
        for channel in closed {
            mail.channels.entry(channel.clone()).or_default().closed = true;
        }
        Some(mail)
    }

    /// A signal with this id came before on this channel.
    pub fn was_told(&self, channel: &Name, id: &Name) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.seen.contains_key(id))
    }

    /// Nothing more is taken on this channel: the code has said so.
    pub fn is_closed(&self, channel: &Name) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.closed)
    }

    /// The questions whose answers the code waits for, by step.
    pub fn questions(&self) -> &HashMap<Name, Uuid> {
        &self.questions
    }

    /// The next signal on this channel.
    pub fn next(&self, channel: &Name) -> Option<&Unread> {
        self.channels.get(channel)?.unread.front()
    }

    /// A step has waited for an event.
    pub fn has_waited_for_events(&self) -> bool {
        self.waited_for_events
    }

    /// Up to which event of its topic the run has heard on this channel, as far as that is known.
    pub fn heard_until(&self, channel: &Name) -> Option<Timestamp> {
        self.heard.get(channel).copied().max(self.heard_others)
    }

    pub(crate) fn hear(&mut self, channel: &Name, published: Timestamp) {
        let heard = self.heard.entry(channel.clone()).or_insert(published);
        *heard = published.max(*heard);
    }

    /// What lies on this channel and no wait has taken.
    pub fn unread_len_on(&self, channel: &Name) -> usize {
        self.channels.get(channel).map_or(0, |channel| channel.unread.len())
    }

    /// All signals on this channel that no wait has taken, oldest first.
    pub fn unread_on(&self, channel: &Name) -> impl Iterator<Item = &Unread> {
        self.channels.get(channel).into_iter().flat_map(|channel| &channel.unread)
    }

    /// Signals of others that no wait has taken. What the engine itself tells is bounded where it begins.
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

    /// What this wait has taken.
    pub fn taken(&self, step: &Name) -> Option<&Unread> {
        self.waits.get(step)?.took.as_ref()
    }

    pub(crate) fn receive(&mut self, channel: &Name, signal: Unread) {
        self.unread_len += counted(channel);
        let channel = self.channels.entry(channel.clone()).or_default();
        channel.seen.insert(signal.id.clone(), signal.seq);
        channel.unread.push_back(signal);
    }

    /// How often the code has set each of its values, by name.
    pub fn values(&self) -> &HashMap<Name, u64> {
        &self.values
    }

    pub(crate) fn set_value(&mut self, name: &Name, number: u64) {
        self.values.insert(name.clone(), number);
    }

    /// A wait is over by itself at another time.
    pub(crate) fn wait_until(&mut self, step: &Name, until: Option<Timestamp>) {
        if let Some(known) = self.waits.get_mut(step) {
            known.until = until;
        }
    }

    /// The channel on which this step waits or waited.
    pub fn channel_of(&self, step: &Name) -> Option<&Name> {
        self.waits.get(step).map(|known| &known.channel)
    }

    /// The step is a wait for a signal.
    pub fn is_wait(&self, step: &Name) -> bool {
        self.waits.contains_key(step)
    }

    pub(crate) fn wait(&mut self, channel: &Name, step: &Name, until: Option<Timestamp>) {
        let known = Known { channel: channel.clone(), until, took: None, closed: false };
        self.waits.insert(step.clone(), known);
        self.waited_for_events |= is_event_channel(channel);
        let channel = self.channels.entry(channel.clone()).or_default();
        if !channel.waiting.contains(step) {
            channel.waiting.push_back(step.clone());
        }
    }

    /// A wait took this signal.
    pub(crate) fn take(&mut self, step: &Name, channel: &Name, signal: Unread) {
        let (seq, name) = (signal.seq, channel);
        let channel = self.channels.entry(channel.clone()).or_default();
        channel.seen.insert(signal.id.clone(), seq);
        channel.waiting.retain(|waiting| waiting != step);
        if let Some(at) = channel.unread.iter().position(|unread| unread.seq == seq) {
            channel.unread.remove(at);
            self.unread_len -= counted(name);
        }
        let known = self.waits.entry(step.clone()).or_insert_with(|| Known {
            channel: name.clone(),
            until: None,
            took: None,
            closed: false,
        });
        known.took = Some(signal);
    }

    /// The code dropped the wait before it heard of its end. What it took lies in front of its channel again,
    /// and a channel that it closed is open: nobody has seen the one or the other. Answers with what it waits
    /// for, should the code come by again.
    pub(crate) fn give_back(&mut self, step: &Name, at: Timestamp) -> Option<(Name, Option<Timestamp>)> {
        let known = self.waits.get_mut(step)?;
        let channel = self.channels.entry(known.channel.clone()).or_default();
        let until = match known.took.take() {
            Some(signal) => {
                channel.unread.push_front(signal);
                self.unread_len += counted(&known.channel);
                known.until
            }
            None if known.closed => {
                (known.closed, channel.closed) = (false, false);
                known.until
            }
            // Its time was over.
            None => Some(at),
        };
        Some((known.channel.clone(), until))
    }

    /// The step waits no longer, because of its time or because the code has dropped it.
    pub(crate) fn leave(&mut self, channel: &Name, step: &Name) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.waiting.retain(|waiting| waiting != step);
        }
    }

    /// This wait found nothing and closed its channel, or found it closed.
    pub fn was_last_call(&self, step: &Name) -> bool {
        self.waits.get(step).is_some_and(|known| known.closed)
    }

    pub(crate) fn close(&mut self, step: &Name, channel: &Name) {
        let (until, took, closed) = (None, None, true);
        self.waits.insert(step.clone(), Known { channel: channel.clone(), until, took, closed });
        self.channels.entry(channel.clone()).or_default().closed = true;
    }
}

/// Whether a signal on this channel counts among those that others sent.
fn counted(channel: &Name) -> usize {
    usize::from(!channel.starts_with('~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunId, child_channel};

    #[test]
    fn the_latest_ends_of_children_go_along_and_no_more_of_them() {
        let mut mail = Mail::default();
        let channel = |n: u64| child_channel(RunId(uuid::Uuid::from_u128(n.into())));
        for seq in 1..=ENDS_KEPT as u64 + 5 {
            mail.receive(&channel(seq), Unread { seq, id: "end:2".into(), failure: None });
        }
        mail.receive(&"item".into(), Unread { seq: 1, id: "tea".into(), failure: None });

        let carried = mail.carried();

        assert_eq!(carried.unread.len(), ENDS_KEPT + 1);
        assert!(carried.unread.iter().any(|signal| *signal.channel == *"item"));
        let has = |n: u64| carried.unread.iter().any(|signal| signal.channel == channel(n));
        assert!(!has(5) && has(6) && has(ENDS_KEPT as u64 + 5));
    }
}
