//! What the parts of the `kagzi` command share: what it prints, the processes it starts, and the signals that
//! stop it.

pub mod address;
pub mod child;
pub mod output;
pub mod progress;
pub mod stop;
pub mod table;
pub mod terminal;
pub mod trouble;
