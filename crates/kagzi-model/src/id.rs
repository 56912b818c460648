//! Ids. They are made outside (UUIDv7: time-ordered, so neighbours in time are neighbours on disk).

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use crate::{Timestamp, backoff::seed};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id!(
    /// One execution of a workflow.
    RunId
);
uuid_id!(
    /// One registered worker process.
    WorkerId
);

impl RunId {
    /// An id that follows from these parts, and sorts among those that were made at that time.
    pub(crate) fn derived(at: Timestamp, parts: &[&[u8]]) -> RunId {
        let bits = |salt: &'static [u8]| seed(&[parts, &[salt]].concat()).to_be_bytes();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&bits(b"a"));
        random[8..].copy_from_slice(&bits(b"b")[..2]);
        let millis = u64::try_from(at.0 / 1000).unwrap_or(0);
        RunId(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}
