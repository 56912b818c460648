//! What a server says about itself.

use std::time::{Duration, SystemTime};

use kagzi_proto::v1;

use crate::absent::always;
use crate::retry_policy::from_millis;

/// What a server says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// Where it keeps its data, without secrets.
    pub store: String,
    /// Larger payloads are warned of.
    pub payload_warn_bytes: u64,
    /// Larger payloads are refused.
    pub payload_max_bytes: u64,
    /// How often workers say that they live.
    pub heartbeat_interval: Duration,
    /// After how long a silent worker is lost.
    pub stale_after: Duration,
    /// For how long a run belongs to its worker without a heartbeat.
    pub lease: Duration,
    /// Since it started.
    pub uptime: Duration,
    /// Rows of its database that it cannot read, the first hundred.
    pub set_aside: Vec<SetAside>,
    /// How many there are.
    pub set_aside_total: u64,
}

/// A row of a server's database that it cannot read. It stops nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetAside {
    /// `run`, `schedule`, `worker` or `namespace`.
    pub kind: String,
    /// In words: run 0198… of namespace 'shop'.
    pub name: String,
    /// Why it cannot be read.
    pub why: String,
    /// Since when.
    pub since: SystemTime,
}

/// Whether a server is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// It takes calls.
    pub ready: bool,
    /// Why not.
    pub message: String,
}

impl ServerInfo {
    pub(crate) fn from_proto(info: v1::GetServerInfoResponse) -> ServerInfo {
        let set_aside = |row: v1::SetAsideRow| SetAside {
            kind: v1::SetAsideKind::try_from(row.kind).unwrap_or_default().word(),
            name: row.name,
            why: row.why,
            since: always(row.since),
        };
        ServerInfo {
            version: info.version,
            store: info.store,
            payload_warn_bytes: info.payload_warn_bytes,
            payload_max_bytes: info.payload_max_bytes,
            heartbeat_interval: from_millis(info.heartbeat_interval_ms),
            stale_after: from_millis(info.stale_after_ms),
            lease: from_millis(info.lease_ms),
            uptime: from_millis(info.uptime_ms),
            set_aside: info.set_aside.into_iter().map(set_aside).collect(),
            set_aside_total: info.set_aside_total,
        }
    }
}

impl Health {
    pub(crate) fn from_proto(health: v1::HealthCheckResponse) -> Health {
        Health { ready: health.ready, message: health.message }
    }
}
