//! One run on this worker: its journal, its operations and the executor that polls the workflow function.
//!
//! Nothing here knows about streams or reconnects. A run hands its reports to an [`uplink::Uplink`] and
//! waits for verdicts; whoever owns the stream makes sure that they come.

pub(crate) mod announced;
pub(crate) mod answer;
pub(crate) mod before_retry;
pub(crate) mod call;
pub(crate) mod child;
pub(crate) mod children;
pub(crate) mod context;
pub(crate) mod continue_as_new;
pub(crate) mod ending;
pub(crate) mod event;
pub(crate) mod executor;
pub(crate) mod flight;
pub(crate) mod gather;
pub(crate) mod inside;
pub(crate) mod journal;
pub(crate) mod label;
pub(crate) mod mailbox;
pub(crate) mod missed;
pub(crate) mod next;
pub(crate) mod open;
pub(crate) mod parts;
pub(crate) mod path;
pub(crate) mod poll;
pub(crate) mod progress;
pub(crate) mod promise;
pub(crate) mod published;
pub(crate) mod question;
pub(crate) mod race;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod signal;
mod signal_run;
pub(crate) mod sleep;
pub(crate) mod slot;
pub(crate) mod spawn;
pub(crate) mod stall;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod step_builder;
pub(crate) mod turns;
pub(crate) mod uplink;
pub(crate) mod value;

#[cfg(test)]
mod tests;
