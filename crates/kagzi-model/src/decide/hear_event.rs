//! HearEvent: a published event reaches a run that waits for it, or that is about to.

use super::{
    history_bound,
    signal::{Told, deliver},
};
use crate::{
    Aggregate, Change, Done, Failure, Name, Payload, Rejection, Rule, Timestamp, Topic, codes,
    limits::UNREAD_MAX,
};

/// Tells the run of an event, like a signal on a channel that only the engine uses. A run hears of the events
/// of one topic in their order, and of each once: what stands at or before the last one that it has heard is
/// a repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct HearEvent {
    pub topic: Topic,
    pub id: Name,
    /// Its place on its topic.
    pub published: Timestamp,
    pub payload: Payload,
    /// A wait for it opens in the same commit. Otherwise only a run whose wait is open hears of it.
    pub opening: bool,
}

impl Rule for HearEvent {
    type Sender = ();
    type Reply = Done;

    /// It has heard of this one, or of one behind it; or nobody there waits for it.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        let channel = self.topic.channel();
        let is_new = self.published > seen.heard_until(&channel);
        let waits = self.opening || seen.waits_on(&channel).is_some();
        let has_room = seen.mail.as_deref().is_none_or(|mail| mail.unread_len_on(&channel) < UNREAD_MAX);
        (seen.run.state.finished() || !is_new || !waits || !has_room).then_some(Done::BEFORE)
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Done>, Rejection> {
        let (mut payload, mut failure) = (self.payload.clone(), None);
        if !history_bound::fits(seen, payload.data.len()) {
            let why = format!(
                "event '{}' on topic {} does not fit into the history of run {}",
                self.id,
                self.topic.words(),
                seen.run.id
            );
            failure = Some(Failure::new(codes::HISTORY_TOO_LARGE, &why).non_retryable());
            payload = Payload::new(&b""[..]);
        }
        let (channel, published) = (self.topic.channel(), Some(self.published));
        let told = Told { channel: &channel, id: &self.id, payload: Some(payload), failure, published };
        Ok(deliver(now, seen, told).replying(Done::NOW))
    }

    fn payload_bytes(&self) -> usize {
        self.payload.data.len()
    }
}
