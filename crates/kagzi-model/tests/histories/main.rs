//! Random histories of one run, played through `decide`.

mod audit;
mod await_or_park;
mod children;
mod generations;
mod invariants;
mod labels;
mod late_repeats;
mod play;
mod questions;
mod rebuild;
mod signals;

/// How many histories each claim is tried on; `scripts/test.sh soak` tries more.
#[expect(clippy::disallowed_methods, reason = "the model has no environment, its soak test has")]
fn cases() -> u32 {
    match std::env::var("KAGZI_CASES") {
        Ok(cases) => cases.parse().expect("KAGZI_CASES is a number"),
        Err(_) => 128,
    }
}
