//! Whether other servers are there at all. Alone on a database, which is the usual case, nobody needs ringing: at
//! full load on two cores, ringing for nobody gave 3,400 to 3,800 runs/s against 4,100 to 5,000 without
//! (`examples/throughput.rs`, on a machine that was not quiet).

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a server says that it is there.
pub const GREET_EVERY: Duration = Duration::from_secs(5);
/// Silence for this long means that nobody else is there.
const SILENCE: Duration = Duration::from_secs(16);

/// What was heard of other servers. Without ears nobody is known to be away, so company is assumed.
#[derive(Default)]
pub struct Company {
    heard: Mutex<Option<Instant>>,
}

impl Company {
    /// Another server spoke, or we begin to listen and do not know yet.
    pub fn heard(&self, now: Instant) {
        *self.heard.lock() = Some(now);
    }

    /// We cannot hear any more.
    pub fn deaf(&self) {
        *self.heard.lock() = None;
    }

    /// Nobody else is there: they would have greeted three times.
    pub fn absent(&self, now: Instant) -> bool {
        self.heard.lock().is_some_and(|heard| now.saturating_duration_since(heard) > SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_is_absent_only_after_a_silence_that_we_could_have_heard() {
        let company = Company::default();
        let start = Instant::now();
        let later = |s| start + Duration::from_secs(s);

        assert!(!company.absent(later(100)), "deaf");
        company.heard(start);
        assert!(!company.absent(later(15)));
        assert!(company.absent(later(17)));
        company.heard(later(17));
        assert!(!company.absent(later(18)));
        company.deaf();
        assert!(!company.absent(later(100)), "deaf again");
    }
}
