//! Polls a workflow function until it ends, parks or must stop, and reports which.
//!
//! Between two polls with nothing new the function stands still. Only then it is told of the next thing, and
//! of one thing only: see [`Turns`](crate::run::turns::Turns).

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, report};

use crate::run::context::WorkflowContext;
use crate::run::ending::{Ended, Over, end_of, report_end};
use crate::run::flight::{self, Flight, Sent};
use crate::run::inside;
use crate::run::journal::weights;
use crate::run::missed::Told;
use crate::run::next::{Answered, Next, OnItsWay};
use crate::run::parts::Parts;
use crate::run::stall::{Stall, stalled};
use crate::run::state::{RunEnd, RunState, refused};
use crate::run::uplink::{Uplink, Verdict};
use crate::worker::handlers::Handlers;
use crate::{failure, limits};

type Function = BoxFuture<'static, anyhow::Result<v1::Payload>>;

/// Executes an assigned run and returns when the server has acknowledged how it ended. Until then the
/// run counts as in flight, so that its lease is renewed and survives an outage.
pub(crate) async fn execute(
    mut assign: Box<v1::Assign>,
    handlers: Arc<Handlers>,
    uplink: Uplink,
    span: tracing::Span,
) {
    let handler = handlers.get(&assign.workflow_type);
    // Somebody else's code, like the function: a panic in it is the run's affair and not the end of this
    // task.
    let weights = weights(&assign.journal);
    let decoded = match uplink.codecs.is_empty() {
        true => Ok(Ok(())),
        false => AssertUnwindSafe(uplink.codecs.decode_assign(&mut assign)).catch_unwind().boxed().await,
    };
    let input = assign.input.take();
    let workflow_type = std::mem::take(&mut assign.workflow_type);
    let run = Arc::new(RunState::new(*assign, weights, uplink, span));
    let over = Over::new(&run);
    let end = match (handler, decoded) {
        (None, _) => RunEnd::Released(format!("no handler for workflow type '{workflow_type}'")),
        (Some(handler), Ok(Ok(()))) => {
            if run.lease.epoch == 1 {
                run.uplink.equipment.observers.run_began(&WorkflowContext::new(run.clone()));
            }
            let context = WorkflowContext::new(run.clone());
            match catch_unwind(AssertUnwindSafe(|| handler(context, input.as_ref()))) {
                Ok(Ok(function)) => poll_to_end(&run, around(&run, function)).await,
                Ok(Err(invalid)) => RunEnd::failed(*invalid),
                Err(panic) => RunEnd::failed(failure::of_panic(&*panic)),
            }
        }
        // Not a failure: with the right key or codec the run can go on.
        (Some(_), Ok(Err(message))) => RunEnd::Blocked(message),
        (Some(_), Err(panic)) => {
            RunEnd::Blocked(format!("a codec panicked: {}", failure::of_panic(&*panic).message))
        }
    };
    let outcome = report_end(&run, end).await;
    over.say(outcome);
}

/// The function behind the worker's middleware.
fn around(run: &Arc<RunState>, function: Function) -> Function {
    if !run.uplink.equipment.has_middleware() {
        return function;
    }
    let context = WorkflowContext::new(run.clone());
    let equipment = run.uplink.equipment.clone();
    Box::pin(async move { equipment.around_run(&context, function).await })
}

/// The function is dropped when this returns, before its end is reported: a parked run must not go on.
async fn poll_to_end(run: &Arc<RunState>, function: Function) -> RunEnd {
    let mut executor = Executor {
        run,
        function: Some(function),
        parts: Parts::default(),
        told: None,
        flight: None,
        encoding: None,
        ended: None,
        stall: None,
    };
    let end = poll_fn(|cx| executor.poll(cx)).await;
    match executor.drop_function() {
        Ok(()) => end,
        Err(_) if matches!(end, RunEnd::Left) => {
            tracing::error!(run = %run.lease.run_id, "the function of a parked run panicked while it was \
                dropped");
            end
        }
        Err(panic) => RunEnd::failed(failure::of_panic(&*panic)),
    }
}

struct Executor<'a> {
    run: &'a Arc<RunState>,
    function: Option<Function>,
    /// Parts of the function that it gave to `ctx.spawn`.
    parts: Parts,
    /// Whose turn it is, until the function stands still.
    told: Option<Arc<dyn Told>>,
    /// At most one report about what the function was told is on its way: two could be committed in the other
    /// order.
    flight: Option<Flight<'a>>,
    /// The function has returned, and codecs work on its output.
    encoding: Option<BoxFuture<'a, RunEnd>>,
    ended: Option<RunEnd>,
    stall: Option<Stall>,
}

impl<'a> Executor<'a> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<RunEnd> {
        let function = self.run.function.clone();
        function.begin(cx.waker());
        for _ in 0..limits::ROUNDS_MAX {
            self.hear(cx);
            if self.ended.is_none() {
                self.ended = self.run.take_halt().or_else(|| self.encoded(cx));
            }
            let asks_last = self.flight.as_ref().is_some_and(Flight::asks_last);
            if self.ended.is_none() && (self.encoding.is_some() || asks_last) {
                function.end();
                return Poll::Pending;
            }
            self.let_go();
            if self.ended.is_some() {
                if self.flight.is_some() {
                    function.end();
                    return Poll::Pending;
                }
                match self.end() {
                    Some(end) => return Poll::Ready(end),
                    None => continue,
                }
            }
            if function.take_woken() {
                self.poll_function();
                // Out of budget, a `select!` returns without having looked at its branches: that is no
                // standstill.
                if self.ended.is_none() && !tokio::task::coop::has_budget_remaining() {
                    function.call();
                    break;
                }
                continue;
            }
            match self.stand_still(cx) {
                Standstill::Goes => {}
                Standstill::Ends(end) => self.ended = Some(end),
                Standstill::Waits if function.end() => function.begin(cx.waker()),
                Standstill::Waits => return Poll::Pending,
            }
        }
        // Others want this thread too.
        function.end();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// A run that begins anew takes along what nobody has heard: a signal that is on its way to a wait of the
    /// function that has ended must be given back, so nothing of the function may be left by then.
    fn let_go(&mut self) {
        if matches!(self.ended, Some(RunEnd::Continued(..)))
            && let Err(panic) = self.drop_function()
        {
            self.ended = Some(RunEnd::failed(failure::of_panic(&*panic)));
        }
    }

    fn poll_function(&mut self) {
        let Some(function) = &mut self.function else { return };
        let run = self.run;
        run.function.count_poll();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let _mark = inside::enter(run.key());
            let cx = &mut Context::from_waker(&run.waker);
            let polled = function.as_mut().poll(cx);
            if polled.is_pending() {
                self.parts.poll(run);
            }
            polled
        }));
        // Asked first: a function that calls a wrong step and still returns has not completed.
        match run.take_halt().map(Ended::Now).or_else(|| end_of(run, polled)) {
            Some(Ended::Now(end)) => self.ended = Some(end),
            Some(Ended::Encoding(encoding)) => self.encoding = Some(encoding),
            None => {}
        }
    }

    /// The end, once codecs have worked on the output.
    fn encoded(&mut self, cx: &mut Context<'_>) -> Option<RunEnd> {
        match self.encoding.as_mut()?.as_mut().poll(cx) {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }

    /// What the server says to what is on its way.
    fn hear(&mut self, cx: &mut Context<'_>) {
        let Some(flight) = &mut self.flight else { return };
        let Poll::Ready(verdict) = flight.verdict.as_mut().poll(cx) else { return };
        let Some(Flight { what, .. }) = self.flight.take() else { return };
        let settled = match (what, verdict) {
            (Sent::Results(count), Verdict::Committed) => self.run.turns.lock().recorded(count),
            // One that the server refuses ends the run: the code has gone on with it.
            (Sent::Results(_), verdict) => {
                self.run.halt(refused("the result of a step", verdict));
                return;
            }
            (Sent::LastAsk(_), verdict) if flight::has_parked(&verdict) => {
                self.ended = Some(RunEnd::Left);
                return;
            }
            (Sent::Ask(slot) | Sent::LastAsk(slot), verdict) => {
                // A failure that is retried and a sleep that is not over are nothing that the function hears
                // of.
                let ended = verdict.is_told();
                let answered = self.run.turns.lock().answered(ended, verdict.value_bytes());
                match answered {
                    Answered::Settled(settled) => {
                        slot.answer(verdict);
                        settled
                    }
                    Answered::Unheard => {
                        self.send(flight::close(&slot));
                        // Nothing is sent before it is polled.
                        return self.hear(cx);
                    }
                }
            }
            (Sent::Close, Verdict::Committed) => self.run.turns.lock().closed(),
            (Sent::Close, verdict) => {
                self.run.halt(refused("the close of a step", verdict));
                return;
            }
        };
        settled.iter().for_each(Wake::wake_by_ref);
    }

    fn stand_still(&mut self, cx: &mut Context<'_>) -> Standstill {
        self.run.function.looks();
        if let Some(told) = self.told.take() {
            told.pass();
        }
        if let Some(missed) = self.run.missed.oldest() {
            missed.clone().offer();
            self.told = Some(missed);
            return Standstill::Goes;
        }
        let on_its_way = self.flight.as_ref().map_or(OnItsWay::Nothing, Flight::on_its_way);
        let called = self.run.journal.lock().is_called();
        let next = self.run.turns.lock().next(on_its_way, called);
        match next {
            Next::Release(slot) => {
                self.stall = None;
                slot.release();
                self.told = Some(slot);
                return Standstill::Goes;
            }
            Next::Live(settled) => {
                self.stall = None;
                settled.iter().for_each(Wake::wake_by_ref);
                return Standstill::Goes;
            }
            Next::Stalled(place) => {
                let given_up = stalled(self.run, &mut self.stall, place, cx);
                return given_up.map_or(Standstill::Waits, Standstill::Ends);
            }
            Next::Ask(slot, body) => {
                self.send(flight::ask(self.run, slot, body));
                return Standstill::Goes;
            }
            Next::Close(slot) => {
                self.send(flight::close(&slot));
                return Standstill::Goes;
            }
            Next::Send(results) => {
                self.send(flight::results(results));
                return Standstill::Goes;
            }
            Next::Nothing => {}
        }
        let begin = self.run.turns.lock().share_permits();
        if !begin.is_empty() {
            begin.iter().for_each(Wake::wake_by_ref);
            return Standstill::Goes;
        }
        if on_its_way == OnItsWay::Nothing
            && let Some((waits, wake)) = self.run.turns.lock().waits()
        {
            return Standstill::Ends(RunEnd::Parked(waits, wake));
        }
        Standstill::Waits
    }

    fn send(&mut self, what: (Sent, report::Body)) {
        self.flight = Some(Flight::of(self.run, what));
    }

    /// The end, once what the function was told before is sent.
    fn end(&mut self) -> Option<RunEnd> {
        let unheard = self.run.turns.lock().take_unheard();
        if let (Some(RunEnd::Continued(..)), Some(slot)) = (&self.ended, unheard) {
            self.send(flight::close(&slot));
            return None;
        }
        let mut turns = self.run.turns.lock();
        let held = match self.ended.as_mut()? {
            RunEnd::Completed(_, steps) | RunEnd::Continued(_, steps) => {
                match turns.take_held_if_small(limits::TRAILING_BYTES_MAX) {
                    Some(small) => {
                        steps.extend(small);
                        Vec::new()
                    }
                    None => turns.take_held(),
                }
            }
            RunEnd::Failed { .. } | RunEnd::Blocked(_) if turns.has_held() => turns.take_held(),
            RunEnd::Failed { .. }
            | RunEnd::Blocked(_)
            | RunEnd::Parked(..)
            | RunEnd::Left
            | RunEnd::Released(_) => Vec::new(),
        };
        drop(turns);
        if held.is_empty() {
            return self.ended.take();
        }
        self.send(flight::results(held));
        None
    }

    /// Its `Drop` is somebody else's code too.
    fn drop_function(&mut self) -> Result<(), Box<dyn Any + Send>> {
        let (function, parts) = (self.function.take(), std::mem::take(&mut self.parts));
        catch_unwind(AssertUnwindSafe(|| {
            drop(function);
            drop(parts);
        }))
    }
}

impl Drop for Executor<'_> {
    fn drop(&mut self) {
        // Aborted: the panic of a `Drop` has nowhere to go.
        if self.drop_function().is_err() {
            tracing::error!(run = %self.run.lease.run_id, "the workflow function panicked while it was \
                dropped");
        }
    }
}

enum Standstill {
    /// Something changed.
    Goes,
    Waits,
    Ends(RunEnd),
}
