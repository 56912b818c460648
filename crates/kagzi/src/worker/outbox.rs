//! Everything on its way to the server: what still has to be written to the stream, and every report that
//! was not acknowledged yet and must be written again to the next stream.

use std::collections::{BTreeMap, VecDeque};

use kagzi_proto::v1::{self, report, worker_message};
use tokio::time::Instant;

use crate::limits;
use crate::run::uplink::{Submission, Verdict};

pub(crate) struct Outbox {
    next_seq: u64,
    unwritten: VecDeque<Unwritten>,
    unacknowledged: BTreeMap<u64, Box<Submission>>,
    /// How many of them nobody waits for: runs that were given back.
    unattended: usize,
    /// Refused for now. All wait equally long, so the first in is the first due.
    deferred: VecDeque<(Instant, u64)>,
}

enum Unwritten {
    Report(u64),
    /// Worth sending on this stream only.
    Started(Box<v1::StepStarted>),
    /// Worth sending on this stream only.
    Notice(Box<worker_message::Message>),
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            next_seq: 1,
            unwritten: VecDeque::new(),
            unacknowledged: BTreeMap::new(),
            unattended: 0,
            deferred: VecDeque::new(),
        }
    }

    pub(crate) fn push_notice(&mut self, notice: worker_message::Message) {
        self.unwritten.push_back(Unwritten::Notice(Box::new(notice)));
    }

    pub(crate) fn push_started(&mut self, started: v1::StepStarted) {
        self.unwritten.push_back(Unwritten::Started(Box::new(started)));
    }

    pub(crate) fn push_submission(&mut self, submission: Box<Submission>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.unattended += usize::from(submission.verdict.is_none());
        self.unacknowledged.insert(seq, submission);
        self.unwritten.push_back(Unwritten::Report(seq));
    }

    /// Gives a run back on behalf of a task that no longer exists.
    pub(crate) fn push_release(&mut self, lease: v1::LeaseRef, reason: &str) {
        let body = report::Body::RunReleased(v1::RunReleased { reason: reason.to_owned() });
        self.push_submission(Box::new(Submission { lease, body, verdict: None }));
    }

    /// Says that a step was dropped. Nobody waits for the answer.
    pub(crate) fn push_closed(&mut self, lease: v1::LeaseRef, step: v1::StepRef) {
        let body = report::Body::StepClosed(v1::StepClosed { step: Some(step) });
        self.push_submission(Box::new(Submission { lease, body, verdict: None }));
    }

    /// The next message for the stream. A report stays here until it is acknowledged.
    pub(crate) fn pop(&mut self) -> Option<v1::WorkerMessage> {
        while let Some(next) = self.unwritten.pop_front() {
            let message = match next {
                Unwritten::Notice(notice) => *notice,
                Unwritten::Started(started) => worker_message::Message::StepStarted(started),
                // Its run may have been lost in the meantime.
                Unwritten::Report(seq) => match self.unacknowledged.get(&seq) {
                    Some(waiting) => worker_message::Message::Report(v1::Report {
                        seq,
                        lease: Some(waiting.lease.clone()),
                        body: Some(waiting.body.clone()),
                    }),
                    None => continue,
                },
            };
            return Some(v1::WorkerMessage { message: Some(message) });
        }
        None
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    pub(crate) fn has_unacknowledged(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// False while the stream is slower than the runs; they then wait in front of the inbox.
    pub(crate) fn has_room(&self) -> bool {
        self.unwritten.len() < limits::INBOX_LEN_MAX
    }

    /// A new stream: write every unacknowledged report again, in order, under its old number.
    pub(crate) fn rewind(&mut self) {
        self.deferred.clear();
        self.unwritten = self.unacknowledged.keys().copied().map(Unwritten::Report).collect();
    }

    pub(crate) fn settle(&mut self, seq: u64, verdict: Verdict) {
        // Unknown numbers are acknowledged reports sent twice, or those of lost runs.
        let Some(settled) = self.unacknowledged.remove(&seq) else { return };
        match settled.verdict {
            // Nobody listens when user code dropped the step, e.g. in a select. The result stays recorded.
            Some(waiting) => drop(waiting.send(verdict)),
            None => self.unattended -= 1,
        }
    }

    /// Whose report it was, as long as somebody cares.
    pub(crate) fn lease(&self, seq: u64) -> Option<&v1::LeaseRef> {
        self.unacknowledged.get(&seq).map(|waiting| &waiting.lease)
    }

    pub(crate) fn defer(&mut self, seq: u64) {
        self.deferred.push_back((Instant::now() + limits::RESEND_DELAY, seq));
    }

    pub(crate) fn next_deferred_at(&self) -> Option<Instant> {
        self.deferred.front().map(|(at, _)| *at)
    }

    pub(crate) fn write_deferred_again(&mut self, now: Instant) {
        while let Some((_, seq)) = self.deferred.pop_front_if(|(at, _)| *at <= now) {
            self.unwritten.push_back(Unwritten::Report(seq));
        }
    }

    /// The lease is gone: nothing that was said under it can be recorded any more.
    pub(crate) fn forget(&mut self, lease: &v1::LeaseRef) {
        let unattended = &mut self.unattended;
        self.unacknowledged.retain(|_, waiting| {
            let goes = waiting.lease == *lease;
            *unattended -= usize::from(goes && waiting.verdict.is_none());
            !goes
        });
    }

    /// The same for a lease that no run is executed under: what it may have left behind is that it was given
    /// back. Assignments come by the hundred, and a look at every report for each of them was a tenth of this
    /// thread's work.
    pub(crate) fn forget_unattended(&mut self, lease: &v1::LeaseRef) {
        if self.unattended > 0 {
            self.forget(lease);
        }
    }

    /// What the execution said last was committed, although the acknowledgement is not here yet.
    pub(crate) fn settle_end(&mut self, lease: &v1::LeaseRef) {
        let is_end = |waiting: &Submission| waiting.lease == *lease && is_end(&waiting.body);
        let end = self.unacknowledged.iter().find(|(_, waiting)| is_end(waiting)).map(|(seq, _)| *seq);
        if let Some(seq) = end {
            self.settle(seq, Verdict::Committed);
        }
        self.forget(lease);
    }

    /// The run's execution is over and only the acknowledgement is missing.
    pub(crate) fn has_end_of(&self, lease: &v1::LeaseRef) -> bool {
        self.unacknowledged.values().any(|waiting| waiting.lease == *lease && is_end(&waiting.body))
    }
}

fn is_end(body: &report::Body) -> bool {
    use report::Body::{
        LabelSet, PromiseMade, RunBlocked, RunCompleted, RunContinued, RunFailed, RunParked, RunReleased,
        SignalAwaited, SleepOver, SleepScheduled, StartChild, StepClosed, StepFailed, StepProgressed,
        StepRecorded, StepsRecorded, ValueSet,
    };
    match body {
        RunCompleted(_) | RunContinued(_) | RunFailed(_) | RunParked(_) | RunReleased(_) | RunBlocked(_) => {
            true
        }
        StepRecorded(_) | StepProgressed(_) | StepFailed(_) | SleepScheduled(_) | SleepOver(_)
        | PromiseMade(_) | ValueSet(_) | LabelSet(_) | SignalAwaited(_) | StartChild(_)
        | StepsRecorded(_) | StepClosed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn lease(run_id: &str) -> v1::LeaseRef {
        v1::LeaseRef { run_id: run_id.to_owned(), epoch: 1 }
    }

    fn outbox_with_releases(runs: &[&str]) -> Outbox {
        let mut outbox = Outbox::new();
        for run in runs {
            outbox.push_release(lease(run), "test");
        }
        outbox
    }

    fn written(outbox: &mut Outbox) -> Vec<u64> {
        let seq = |message: v1::WorkerMessage| match message.message.unwrap() {
            worker_message::Message::Report(report) => report.seq,
            other => panic!("not a report: {other:?}"),
        };
        std::iter::from_fn(|| outbox.pop()).map(seq).collect()
    }

    #[test]
    fn a_new_stream_gets_every_unacknowledged_report_in_order_under_its_old_number() {
        let mut outbox = outbox_with_releases(&["a", "b", "c"]);
        assert_eq!(written(&mut outbox), [1, 2, 3]);
        outbox.settle(2, Verdict::Committed);
        outbox.push_notice(worker_message::Message::Goodbye(v1::Goodbye {}));

        outbox.rewind();

        assert_eq!(written(&mut outbox), [1, 3]);
    }

    #[test]
    fn the_reports_of_a_lost_run_are_not_sent() {
        let mut outbox = outbox_with_releases(&["a", "b"]);

        outbox.forget(&lease("a"));

        assert_eq!(written(&mut outbox), [2]);
        assert!(!outbox.has_end_of(&lease("a")));
        assert!(outbox.has_end_of(&lease("b")));
    }

    #[test]
    fn a_run_that_comes_back_is_not_given_away_by_an_old_release() {
        let mut outbox = outbox_with_releases(&["a", "b"]);
        let (waiting, _) = oneshot::channel();
        let body = report::Body::RunParked(v1::RunParked::default());
        outbox.push_submission(Box::new(Submission { lease: lease("c"), body, verdict: Some(waiting) }));

        outbox.forget_unattended(&lease("a"));
        assert_eq!(written(&mut outbox), [2, 3]);

        outbox.settle(2, Verdict::Committed);
        assert_eq!(outbox.unattended, 0);
        outbox.forget_unattended(&lease("c"));
        assert!(outbox.has_end_of(&lease("c")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_refused_for_now_is_written_again_after_a_moment() {
        let mut outbox = outbox_with_releases(&["a"]);
        assert_eq!(written(&mut outbox), [1]);

        outbox.defer(1);
        outbox.write_deferred_again(Instant::now());
        assert_eq!(written(&mut outbox), [0; 0]);
        tokio::time::advance(limits::RESEND_DELAY).await;
        outbox.write_deferred_again(Instant::now());

        assert_eq!(written(&mut outbox), [1]);
    }
}
