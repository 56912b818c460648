//! Faults and bad input against real processes on SQLite: the rows of FAULTS.md. Names are claims.

mod bad_input;
mod bad_operators;
mod cancel;
mod chaos;
mod crash_points;
mod cut_off;
mod deadlines;
mod drain;
mod durable_answers;
mod fencing;
mod handlers;
mod invariants;
mod metrics;
mod operators;
mod payloads;
mod readiness;
mod registry;
mod retry_load;
mod schedules;
mod server_crash;
mod server_stop;
mod starts;
mod unary_steps;
mod user_code;
mod why;
mod worker_crash;
