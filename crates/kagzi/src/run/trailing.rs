//! Results that are known but not sent yet. They travel with what the run says next: with its end, in one report and
//! one commit, or alone as soon as the function waits for something else.

use kagzi_proto::v1;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The trailing results of one run.
#[derive(Default)]
pub(crate) struct Trailing {
    state: Mutex<State>,
    settled: Notify,
}

#[derive(Default)]
struct State {
    held: Vec<v1::StepRecorded>,
    /// Sent, and not acknowledged yet.
    in_flight: usize,
    /// The executor has looked and sleeps: it must be woken for a result that comes from another task.
    executor_sleeps: bool,
}

impl Trailing {
    /// Keeps a result until the executor looks. True: it must be woken for that.
    pub(crate) fn hold(&self, recorded: v1::StepRecorded) -> bool {
        let mut state = self.state.lock();
        state.held.push(recorded);
        std::mem::take(&mut state.executor_sleeps)
    }

    /// The executor polls the function and will look afterwards.
    pub(crate) fn executor_polls(&self) {
        self.state.lock().executor_sleeps = false;
    }

    /// The function waits: what is held has to be sent now.
    pub(crate) fn take_to_send(&self) -> Vec<v1::StepRecorded> {
        let mut state = self.state.lock();
        state.executor_sleeps = true;
        state.in_flight += state.held.len();
        std::mem::take(&mut state.held)
    }

    /// The run ends: what is held goes with the end, unless it is too large to go in one message.
    pub(crate) fn take_small(&self, bytes_max: usize) -> Vec<v1::StepRecorded> {
        let held = &mut self.state.lock().held;
        let bytes: usize = held.iter().map(prost::Message::encoded_len).sum();
        if bytes <= bytes_max { std::mem::take(held) } else { Vec::new() }
    }

    /// A result that was sent is durable.
    pub(crate) fn acknowledged(&self) {
        let in_flight = {
            let mut state = self.state.lock();
            state.in_flight -= 1;
            state.in_flight
        };
        if in_flight == 0 {
            self.settled.notify_waiters();
        }
    }

    /// Returns once every result is durable. What comes next may depend on them, and must not happen before.
    pub(crate) async fn settled(&self) {
        loop {
            let notified = self.settled.notified();
            {
                let state = self.state.lock();
                if state.held.is_empty() && state.in_flight == 0 {
                    return;
                }
            }
            notified.await;
        }
    }
}
