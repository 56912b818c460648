//! A promise: one thing that somebody outside completes, once. What completes it is a signal on a channel of
//! the engine's own; what else is known of it stands here.

use crate::{Mail, Millis, Name, Timestamp};

/// How the channels of promises begin; the name follows.
pub const PROMISE_CHANNEL: &str = "~promise/";

/// The channel on which a promise is completed.
pub fn promise_channel(name: &str) -> Name {
    Name::from(format!("{PROMISE_CHANNEL}{name}"))
}

/// What a run knows of a promise that its code has made.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// The step that made it.
    pub step: Name,
    /// Of the token's secret: whoever shows the secret may complete this promise and nothing else.
    pub token_hash: Name,
    /// By itself it is over then. Counted from when it was made, whenever the code waits for it.
    pub until: Option<Timestamp>,
    /// Whoever works on it says at least so often that he lives.
    pub heartbeat_ms: Option<Millis>,
    /// It is over then, unless there is a sign of life before.
    pub alive_until: Option<Timestamp>,
    /// A wait for it ended because the signs of life stopped.
    pub silent: bool,
}

impl Promise {
    pub(crate) fn new(
        at: Timestamp,
        step: &Name,
        token_hash: &Name,
        until: Option<Timestamp>,
        heartbeat_ms: Option<u64>,
    ) -> Promise {
        let heartbeat_ms = heartbeat_ms.map(|ms| Millis::try_from(ms).unwrap_or(Millis::MAX));
        let alive_until = heartbeat_ms.map(|ms| Promise::lasts_until(ms, at));
        let (step, token_hash) = (step.clone(), token_hash.clone());
        Promise { step, token_hash, until, heartbeat_ms, alive_until, silent: false }
    }

    /// When a wait for it is over by itself.
    pub fn due_at(&self) -> Option<Timestamp> {
        [self.until, self.alive_until].into_iter().flatten().min()
    }

    /// A wait that is over at this time is so because the signs of life stopped.
    pub fn is_silent_at(&self, at: Timestamp) -> bool {
        self.heartbeat_ms.is_some() && self.until.is_none_or(|until| until > at)
    }

    /// Until when one sign of life lasts: half as long again as was asked for, so that not every sign has to
    /// be written down, and nobody is called silent too early.
    pub fn lasts_until(heartbeat_ms: Millis, at: Timestamp) -> Timestamp {
        at.plus_ms(heartbeat_ms.saturating_add(heartbeat_ms / 2))
    }
}

impl Mail {
    /// The promise of this name.
    pub fn promise(&self, name: &str) -> Option<&Promise> {
        self.promises.get(name)
    }

    /// The promise that is completed on this channel.
    pub fn promise_on(&self, channel: &str) -> Option<&Promise> {
        self.promises.get(channel.strip_prefix(PROMISE_CHANNEL)?)
    }

    pub(crate) fn promise_on_mut(&mut self, channel: &str) -> Option<&mut Promise> {
        self.promises.get_mut(channel.strip_prefix(PROMISE_CHANNEL)?)
    }

    pub(crate) fn make_promise(&mut self, name: &Name, promise: Promise) {
        self.promises.insert(name.clone(), promise);
    }

    /// Somebody gave a sign of life. Answers with the waits for it and when they are over by themselves now.
    pub(crate) fn beat(&mut self, name: &Name, until: Timestamp) -> (Vec<Name>, Option<Timestamp>) {
        let Some(promise) = self.promises.get_mut(name) else { return (Vec::new(), None) };
        promise.alive_until = Some(until);
        let due_at = promise.due_at();
        let waits: Vec<Name> = self.waiting(&promise_channel(name)).cloned().collect();
        for step in &waits {
            self.wait_until(step, due_at);
        }
        (waits, due_at)
    }
}
