//! What an operator may set about the edge.

use std::time::Duration;

use crate::config::InvalidSetting;

/// Limits of connections and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeSettings {
    /// Names beside localhost, 127.0.0.1 and [::1] under which a server on loopback may be asked.
    pub allowed_hosts: Vec<String>,
    /// Connections at once; beyond it new ones are closed.
    pub connections_max: usize,
    /// Calls and streams in flight on one connection.
    pub streams_per_connection_max: u32,
    /// A connection that has not begun to speak HTTP within this time is closed.
    pub greeting_timeout: Duration,
    /// A message that has begun must have arrived whole within this time.
    pub message_timeout: Duration,
    /// Bytes of messages that are being received, or answered, at once, of all connections together.
    pub receiving_bytes_max: usize,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        EdgeSettings {
            allowed_hosts: Vec::new(),
            connections_max: 10_000,
            streams_per_connection_max: 1_000,
            greeting_timeout: Duration::from_secs(10),
            message_timeout: Duration::from_secs(30),
            receiving_bytes_max: 256 * 1024 * 1024,
        }
    }
}

impl EdgeSettings {
    /// Refuses limits under which nobody could be served.
    pub fn check(&self, message_bytes_max: usize) -> Result<(), InvalidSetting> {
        let zero = [
            ("server.connections_max", self.connections_max == 0),
            ("server.streams_per_connection_max", self.streams_per_connection_max == 0),
            ("server.greeting_timeout", self.greeting_timeout.is_zero()),
            ("server.message_timeout", self.message_timeout.is_zero()),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(InvalidSetting::new(key, "it must be above zero"));
        }
        if self.receiving_bytes_max < message_bytes_max {
            let rule = format!(
                "it is {} and must be at least {message_bytes_max}, the largest message that \
                 payload.max_size_bytes allows",
                self.receiving_bytes_max
            );
            return Err(InvalidSetting::new("server.receiving_bytes_max", rule));
        }
        Ok(())
    }
}
