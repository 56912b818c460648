//! Who polls: a mark on the thread around every poll of a workflow function, and another around a step's
//! code.
//!
//! Operations are polled by the executor of their run and by nobody else. In a task of its own an operation
//! would go on after its run was parked, and inside another step's code it would not be called again by a
//! replay.

use std::cell::Cell;

use crate::step_error::StepFailure;

const OUTSIDE: &str = "OUTSIDE_WORKFLOW";
const NESTED: &str = "NESTED_STEP";

thread_local! {
    static MARK: Cell<Mark> = const { Cell::new(Mark { run: 0, in_step: false }) };
}

#[derive(Clone, Copy)]
struct Mark {
    /// The run whose function is being polled; 0 = none.
    run: usize,
    in_step: bool,
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
    Entered { before: MARK.replace(Mark { run, in_step: false }) }
}

/// A step's code is polled from now on.
pub(crate) fn enter_step() -> Entered {
    let before = MARK.get();
    Entered { before: MARK.replace(Mark { in_step: true, ..before }) }
}

/// The error of an operation of this run that is called or polled where it must not be.
pub(crate) fn misplaced(run: usize, what: &str) -> Option<anyhow::Error> {
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
    None
}
