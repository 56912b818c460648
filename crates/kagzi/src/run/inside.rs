//! Who polls: a mark on the thread around every poll of a workflow function, another around a step's code,
//! and a third around the code of a scope that is recorded as one.
//!
//! Operations are polled by the executor of their run and by nobody else. In a task of its own an operation
//! would go on after its run was parked, and inside another step's code it would not be called again by a
//! replay. An operation of such a scope is used by the scope's own code: a replay does not execute that once
//! the scope is recorded, so nobody else may depend on it, and it may not use operations of others.

use std::cell::Cell;

use crate::step_error::StepFailure;

const OUTSIDE: &str = "OUTSIDE_WORKFLOW";
const NESTED: &str = "NESTED_STEP";
const OTHER_SCOPE: &str = "OTHER_SCOPE";
/// The mark of a part whose scope is over: no scope has this number.
const OVER: usize = usize::MAX;

thread_local! {
    static MARK: Cell<Mark> = const { Cell::new(Mark { run: 0, in_step: false, scope: 0 }) };
}

#[derive(Clone, Copy)]
struct Mark {
    /// The run whose function is being polled; 0 = none.
    run: usize,
    in_step: bool,
    /// The scope whose code is being polled; 0 = none that is recorded as one.
    scope: usize,
}

/// Takes the mark back, also when the poll panics.
pub(crate) struct Entered {
    before: Mark,
}

impl Drop for Entered {
    fn drop(&mut self) {
        MARK.set(self.before);
    }
}

/// The function of this run is polled from now on.
pub(crate) fn enter(run: usize) -> Entered {
    Entered { before: MARK.replace(Mark { run, in_step: false, scope: 0 }) }
}

/// The code of this scope is polled from now on; none: of one that is over.
pub(crate) fn enter_scope(scope: Option<usize>) -> Entered {
    let before = MARK.get();
    Entered { before: MARK.replace(Mark { scope: scope.unwrap_or(OVER), ..before }) }
}

/// The scope whose code is being polled; 0 = none that is recorded as one.
pub(crate) fn scope() -> usize {
    MARK.get().scope
}

/// A step's code is polled from now on.
pub(crate) fn enter_step() -> Entered {
    let before = MARK.get();
    Entered { before: MARK.replace(Mark { in_step: true, ..before }) }
}

/// The error of an operation of this run and scope that is called or polled where it must not be.
pub(crate) fn misplaced(run: usize, scope: usize, what: &str) -> Option<anyhow::Error> {
    let mark = MARK.get();
    if mark.run != run {
        let message = format!(
            "'{what}' was used outside its workflow function: in a task or thread of its own, or after the \
             run was over. \
             Use ctx.spawn(..) for a part of the workflow that runs beside the rest, and tokio::join! or \
             kagzi::select! \
             inside the function"
        );
        return Some(StepFailure::new(OUTSIDE, message).non_retryable().into());
    }
    if mark.in_step {
        let message = format!(
            "'{what}' was used inside the code of another step. Steps do not nest: a replay returns the \
             outer result \
             without running its code, so the inner step would never be called. Call both from the workflow \
             function"
        );
        return Some(StepFailure::new(NESTED, message).non_retryable().into());
    }
    if mark.scope != scope {
        let message = format!(
            "'{what}' belongs to another scope than the code that uses it. What ctx.run_scope(..) executes \
             is recorded as one: its code uses the context that it is given, and nothing of it is used \
             outside or after its end but its result"
        );
        return Some(StepFailure::new(OTHER_SCOPE, message).non_retryable().into());
    }
    None
}
