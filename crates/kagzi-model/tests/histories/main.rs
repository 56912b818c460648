//! Random histories of one run, played through `decide`.

mod invariants;
mod labels;
mod late_repeats;
mod play;
mod rebuild;
