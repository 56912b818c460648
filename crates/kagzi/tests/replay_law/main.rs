//! The law of replay: whatever a workflow function is made of, every replay does what the first execution
//! did.

mod execute;
mod parks;
mod program;
mod programs;
mod random;
