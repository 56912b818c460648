//! Whether other servers are there at all. Alone on a database, which is the usual case, no notification is
//! needed: at full load on two cores, notifying nobody gave 3,400 to 3,800 runs/s against 4,100 to 5,000
//! without (`examples/throughput.rs`, on a machine that was not quiet).

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a server says that it is there.
pub const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);
/// Silence for this long means that nobody else is there.
const SILENCE: Duration = Duration::from_secs(16);

/// What was heard of other servers. If LISTEN is down we cannot tell whether other servers exist, so we
/// assume that they do.
#[derive(Default)]
pub struct Peers {
    heard: Mutex<Option<Instant>>,
}

impl Peers {
    /// Another server spoke, or we begin to listen and do not know yet.
    pub fn heard(&self, now: Instant) {
        *self.heard.lock() = Some(now);
    }

    /// The connection that listens is lost.
    pub fn lost(&self) {
        *self.heard.lock() = None;
    }

    /// Nobody else is there: another server would have announced itself three times.
    pub fn absent(&self, now: Instant) -> bool {
        self.heard.lock().is_some_and(|heard| now.saturating_duration_since(heard) > SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_is_absent_only_after_a_silence_that_we_could_have_heard() {
        let peers = Peers::default();
        let start = Instant::now();
        let later = |s| start + Duration::from_secs(s);

        assert!(!peers.absent(later(100)), "deaf");
        peers.heard(start);
        assert!(!peers.absent(later(15)));
        assert!(peers.absent(later(17)));
        peers.heard(later(17));
        assert!(!peers.absent(later(18)));
        peers.lost();
        assert!(!peers.absent(later(100)), "deaf again");
    }
}
