//! Hints from the server that something has come on a channel. A hint is never truth: a wait that hears one
//! asks, and one that was lost costs time, not a signal.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use crate::run::state::RunState;

/// The hints of one run.
#[derive(Default)]
pub(crate) struct Mailbox {
    /// How often something came, by channel.
    counts: HashMap<String, u64>,
    /// Counted for every channel at once: after a connection broke, nobody knows what was missed.
    everything: u64,
    waiting: Vec<(String, Waker)>,
}

impl Mailbox {
    fn count(&self, channel: &str) -> u64 {
        self.everything + self.counts.get(channel).copied().unwrap_or(0)
    }

    /// Those who wait on the channel, or on any, to be woken outside the lock.
    fn ring(&mut self, channel: Option<&str>) -> Vec<Waker> {
        match channel {
            Some(channel) => *self.counts.entry(channel.to_owned()).or_default() += 1,
            None => self.everything += 1,
        }
        let heard = |(waits_on, _): &mut (String, Waker)| channel.is_none_or(|channel| waits_on == channel);
        self.waiting.extract_if(.., heard).map(|(_, waker)| waker).collect()
    }
}

impl RunState {
    /// How often something came on the channel so far. A run that asks is told from here on.
    pub(crate) fn hints(self: &Arc<Self>, channel: &str) -> u64 {
        self.uplink.mailboxes.add(self);
        self.mailbox.lock().count(channel)
    }

    /// Returns when more has come on the channel than `seen`.
    pub(crate) async fn hinted(&self, channel: &str, seen: u64) {
        poll_fn(|cx| {
            let mut mailbox = self.mailbox.lock();
            if mailbox.count(channel) != seen {
                return Poll::Ready(());
            }
            let known =
                |(waits_on, waker): &(String, Waker)| waits_on == channel && waker.will_wake(cx.waker());
            if !mailbox.waiting.iter().any(known) {
                mailbox.waiting.push((channel.to_owned(), cx.waker().clone()));
            }
            Poll::Pending
        })
        .await;
    }

    /// What is left in the mailbox holds the run no longer.
    pub(crate) fn close_mailbox(&self) {
        self.uplink.mailboxes.remove(self);
        let left = std::mem::take(&mut *self.mailbox.lock());
        drop(left);
    }
}

/// The runs of one worker that wait for somebody, by run id.
#[derive(Default)]
pub(crate) struct Mailboxes {
    runs: Mutex<HashMap<String, Weak<RunState>>>,
}

impl Mailboxes {
    fn add(&self, run: &Arc<RunState>) {
        self.runs.lock().insert(run.lease.run_id.clone(), Arc::downgrade(run));
    }

    fn remove(&self, run: &RunState) {
        let mut runs = self.runs.lock();
        let of_this = |known: &Weak<RunState>| std::ptr::eq(known.as_ptr(), run);
        if runs.get(&run.lease.run_id).is_some_and(of_this) {
            runs.remove(&run.lease.run_id);
        }
    }

    /// Something came for this run.
    pub(crate) fn ring(&self, run_id: &str, channel: &str) {
        let run = self.runs.lock().get(run_id).and_then(Weak::upgrade);
        if let Some(run) = run {
            let woken = run.mailbox.lock().ring(Some(channel));
            woken.into_iter().for_each(Waker::wake);
        }
    }

    /// Hints may have been lost: everybody asks.
    pub(crate) fn ring_all(&self) {
        let runs: Vec<_> = self.runs.lock().values().filter_map(Weak::upgrade).collect();
        for run in runs {
            let woken = run.mailbox.lock().ring(None);
            woken.into_iter().for_each(Waker::wake);
        }
    }
}
