//! Effects on the world that can be repeated without harm: what a step does may happen once more when its
//! worker dies before the result is recorded.
//!
//! | effect | see |
//! |---|---|
//! | a file with this content | [`write_file`] |

mod write_file;

pub use write_file::{WrittenFile, write_file};
