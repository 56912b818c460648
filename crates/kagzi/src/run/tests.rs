//! The executor against a scripted server: channels instead of a stream, a clock that moves by itself.

mod changed_races;
mod dropped_asks;
mod foreign_waits;
mod generations;
mod last_asks;
mod long_journals;
mod on_retry;
mod parallel_steps;
mod parking;
mod progress;
mod replay;
mod run_ends;
mod scripted_server;
mod standstill;
mod step_failures;
mod trailing;
mod unordered_streams;
