//! The wait between two attempts to reach a server.

use std::time::Duration;

use crate::limits::{RECONNECT_DELAY_MAX, RECONNECT_DELAY_MIN, RECONNECT_QUICK, RECONNECT_QUICK_FOR};

/// Doubles from 100 ms to 5 s, but stays at a quarter of a second at first: a server gives a worker whose
/// connection broke two seconds before its runs go on elsewhere. The jitter keeps a thousand workers from
/// returning in the same instant.
#[derive(Debug)]
pub(crate) struct ReconnectDelay {
    ceiling: Duration,
    waited: Duration,
}

impl ReconnectDelay {
    pub(crate) fn new() -> ReconnectDelay {
        ReconnectDelay { ceiling: RECONNECT_DELAY_MIN, waited: Duration::ZERO }
    }

    /// Between half of the current ceiling and all of it.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let half = self.ceiling / 2;
        // A random UUID is the randomness at hand; jitter needs no better.
        let random = uuid::Uuid::new_v4().as_u64_pair().0 >> 40;
        let delay = half + half.mul_f64(random as f64 / f64::from(1 << 24));
        self.waited += delay;
        let most = if self.waited < RECONNECT_QUICK_FOR { RECONNECT_QUICK } else { RECONNECT_DELAY_MAX };
        self.ceiling = (self.ceiling * 2).min(most);
        delay
    }

    pub(crate) fn reset(&mut self) {
        *self = ReconnectDelay::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_who_is_cut_off_for_a_second_is_back_before_the_servers_grace_ends() {
        for _ in 0..1_000 {
            let mut delay = ReconnectDelay::new();
            let (mut at, second) = (Duration::ZERO, Duration::from_secs(1));
            while at < second {
                at += delay.next_delay();
            }
            assert!(at < Duration::from_millis(1_300), "{at:?}");
        }
    }

    #[test]
    fn delays_grow_from_a_tenth_of_a_second_to_five_seconds() {
        let mut delay = ReconnectDelay::new();

        let first = delay.next_delay();
        let last = (0..40).map(|_| delay.next_delay()).last().unwrap();

        assert!((RECONNECT_DELAY_MIN / 2..=RECONNECT_DELAY_MIN).contains(&first), "{first:?}");
        assert!((RECONNECT_DELAY_MAX / 2..=RECONNECT_DELAY_MAX).contains(&last), "{last:?}");
    }
}
