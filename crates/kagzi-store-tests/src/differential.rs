//! The differential test: one random list of operations, played into two stores, must get the same answers.

mod compare;
mod entities;
mod moves;
mod people;
mod player;
mod world;

pub use moves::Kind;
pub use player::{Tally, play};
