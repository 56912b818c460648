//! The report about what the function was told that is on its way to the server: at most one, because two
//! could be committed in the other order.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use kagzi_proto::v1::{self, WaitOutcome, report};

use crate::run::next::OnItsWay;
use crate::run::slot::Slot;
use crate::run::state::RunState;
use crate::run::uplink::Verdict;

pub(crate) struct Flight<'a> {
    pub(crate) what: Sent,
    pub(crate) verdict: Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>,
}

pub(crate) enum Sent {
    Results(usize),
    Ask(Arc<Slot>),
    /// The same of a function that waits for nothing else: if nothing has come, the run is parked by it. The
    /// function is not polled meanwhile.
    LastAsk(Arc<Slot>),
    /// What it asked for is in the record, and the function had dropped it.
    Close,
}

impl<'a> Flight<'a> {
    pub(crate) fn of(run: &'a RunState, (what, body): (Sent, report::Body)) -> Flight<'a> {
        Flight { what, verdict: Box::pin(run.submit(body)) }
    }

    /// The function stands still until it is answered.
    pub(crate) fn asks_last(&self) -> bool {
        matches!(self.what, Sent::LastAsk(_))
    }

    pub(crate) fn on_its_way(&self) -> OnItsWay {
        match self.what {
            Sent::Results(_) => OnItsWay::Results,
            Sent::Ask(_) | Sent::LastAsk(_) | Sent::Close => OnItsWay::Ask,
        }
    }
}

/// The answer to a last ask says that the run is parked.
pub(crate) fn has_parked(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Waited(waited) if waited.outcome() == WaitOutcome::Waiting)
}

pub(crate) fn results(mut results: Vec<v1::StepRecorded>) -> (Sent, report::Body) {
    let sent = Sent::Results(results.len());
    match results.pop() {
        Some(only) if results.is_empty() => (sent, report::Body::StepRecorded(only)),
        last => {
            results.extend(last);
            (sent, report::Body::StepsRecorded(v1::StepsRecorded { steps: results }))
        }
    }
}

/// A wait for somebody's word that nothing can overtake says how the run is parked if nothing has come: that
/// would be its next report.
pub(crate) fn ask(run: &RunState, slot: Arc<Slot>, mut body: report::Body) -> (Sent, report::Body) {
    if let report::Body::SignalAwaited(awaited) = &mut body
        && !awaited.last_call
        // A question to a person has an act of its own.
        && awaited.ask.is_none()
        && let Some((waits, wake)) = run.turns.lock().waits()
    {
        awaited.park = Some(v1::RunParked { waits, wake: wake.into() });
        return (Sent::LastAsk(slot), body);
    }
    (Sent::Ask(slot), body)
}

pub(crate) fn close(slot: &Slot) -> (Sent, report::Body) {
    (Sent::Close, report::Body::StepClosed(v1::StepClosed { step: Some(slot.step.clone()) }))
}
