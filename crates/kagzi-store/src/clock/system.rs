//! The clock of a server that has its database for itself.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use parking_lot::Mutex;
use tracing::{info, warn};

use super::{Carried, Clock, Correction, LEAP_MIN};

/// How often the wall clock is looked at, and so how long after a suspend the server is late at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A look at both clocks that takes longer than this says too little, for example when the machine was
/// suspended in between.
const LOOK_MAX: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 5;

/// What a machine knows of time.
pub trait TimeSource: Send + Sync + 'static {
    /// The time of day; may leap in either direction.
    fn wall(&self) -> Timestamp;
    /// Time that only ever passes. On Linux and macOS it stands still while the machine is suspended, so a
    /// suspend looks like a leap of the wall clock, and is treated as one.
    fn steady(&self) -> Duration;
}

/// This machine.
struct Machine {
    started: Instant,
}

impl TimeSource for Machine {
    fn wall(&self) -> Timestamp {
        Timestamp(0) + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn steady(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The machine's clock, carried by steady time and compared with the wall clock every second. A wall clock
/// that is ahead is followed at once; one that is behind is waited for by running slowly.
#[derive(Clone)]
pub struct SystemClock {
    inner: Arc<Inner>,
}

struct Inner {
    source: Box<dyn TimeSource>,
    state: Mutex<State>,
}

struct State {
    carried: Carried,
    looked: Duration,
    leaps: u64,
    leapt: Duration,
    /// The log says once that time runs slowly, and once that it has caught up.
    slow: bool,
}

impl SystemClock {
    /// This machine's clock.
    pub fn new() -> Self {
        SystemClock::over(Machine { started: Instant::now() })
    }

    /// A clock over another source, for tests.
    pub fn over(source: impl TimeSource) -> Self {
        let (steady, wall) = (source.steady(), source.wall());
        let state = State {
            carried: Carried::new(steady, wall),
            looked: steady,
            leaps: 0,
            leapt: Duration::ZERO,
            slow: false,
        };
        SystemClock { inner: Arc::new(Inner { source: Box::new(source), state: Mutex::new(state) }) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.inner.read(|state, steady| state.carried.now(steady))
    }

    async fn sleep_until(&self, at: Timestamp) {
        // The wall clock may leap meanwhile, and Tokio's timer counts whole milliseconds and may fire within
        // the one we asked for: look again.
        while let left = at - self.now()
            && !left.is_zero()
        {
            tokio::time::sleep(left.clamp(Duration::from_micros(100), LOOK_EVERY)).await;
        }
    }

    fn calendar(&self) -> Timestamp {
        self.inner.read(|state, steady| state.carried.calendar(steady))
    }

    fn steady(&self) -> Duration {
        self.inner.source.steady()
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    fn leaps(&self) -> u64 {
        self.inner.read(|state, _| state.leaps)
    }

    fn leapt(&self) -> Duration {
        self.inner.read(|state, _| state.leapt)
    }

    fn not_before(&self, newest: Timestamp) {
        let moved = self.inner.read(|state, steady| state.carried.not_before(steady, newest));
        if moved > LEAP_MIN {
            warn!(
                behind_ms = moved.as_millis() as u64,
                "this machine's clock is behind the newest entry of the database; time goes on from that \
                 entry, \
                 a tenth more slowly, until the clock has caught up"
            );
        }
    }

    fn skew_ms(&self) -> i64 {
        self.inner.read(|state, steady| {
            let ahead = state.carried.now(steady) - state.carried.calendar(steady);
            i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX)
        })
    }
}

impl Inner {
    /// Looks at the wall clock if that is due, then reads the state at this moment of steady time.
    fn read<T>(&self, read: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = self.state.lock();
        // Read under the lock: a reading from before another thread's correction would lie before its anchor.
        let mut steady = self.source.steady();
        if steady.saturating_sub(state.looked) >= LOOK_EVERY {
            steady = self.look(&mut state, steady);
        }
        read(&mut state, steady)
    }

    fn look(&self, state: &mut State, mut before: Duration) -> Duration {
        for _ in 0..LOOKS_MAX {
            let wall = self.source.wall();
            let after = self.source.steady();
            if after.saturating_sub(before) <= LOOK_MAX {
                state.looked = after;
                // The wall clock was read between the two; what lies between is carried on.
                let correction = state.carried.correct(after, wall + (after.saturating_sub(before)) / 2);
                state.follow(correction);
                return after;
            }
            before = after;
        }
        // Too busy to look. The next reader tries again.
        before
    }
}

impl State {
    fn follow(&mut self, correction: Correction) {
        match correction {
            Correction::Leapt(by) => {
                self.leaps += 1;
                self.leapt += by;
                self.slow = false;
                warn!(
                    ahead_ms = by.as_millis() as u64,
                    "the wall clock is ahead: the machine was suspended or its clock was set; moving there, \
                     leases have their grace"
                );
            }
            Correction::Slowed(by) if !self.slow => {
                self.slow = true;
                warn!(
                    behind_ms = by.as_millis() as u64,
                    "the wall clock was set back; time runs a tenth more slowly until it has caught up, and \
                     schedules wait for it"
                );
            }
            Correction::Kept if self.slow => {
                self.slow = false;
                info!("the wall clock has caught up");
            }
            Correction::Slowed(_) | Correction::Kept => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clocks that the test moves apart.
    #[derive(Clone)]
    struct Apart(Arc<Mutex<(Timestamp, Duration)>>);

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    const START: Timestamp = Timestamp::from_millis(1_900_000_000_000);

    impl Apart {
        fn clock() -> (Apart, SystemClock) {
            let apart = Apart(Arc::new(Mutex::new((START, Duration::ZERO))));
            (apart.clone(), SystemClock::over(apart))
        }

        fn pass(&self, by: Duration) {
            let mut both = self.0.lock();
            *both = (both.0 + by, both.1 + by);
        }

        fn set_wall(&self, wall: Timestamp) {
            self.0.lock().0 = wall;
        }
    }

    impl TimeSource for Apart {
        fn wall(&self) -> Timestamp {
            self.0.lock().0
        }

        fn steady(&self) -> Duration {
            self.0.lock().1
        }
    }

    #[test]
    fn after_a_suspend_of_eight_hours_it_shows_the_right_time_within_a_second() {
        let (apart, clock) = Apart::clock();

        apart.set_wall(START + 8 * HOUR);
        apart.pass(SECOND);

        assert_eq!(clock.now(), START + 8 * HOUR + SECOND);
        assert_eq!((clock.leaps(), clock.leapt(), clock.skew_ms()), (1, 8 * HOUR, 0));
    }

    #[test]
    fn a_wall_clock_that_is_set_back_slows_it_down_and_the_calendar_follows_at_once() {
        let (apart, clock) = Apart::clock();
        let set_back = Timestamp(START.0 - 3_600_000_000);

        apart.set_wall(set_back);
        apart.pass(SECOND);
        let before = clock.now();
        apart.pass(10 * SECOND);

        assert_eq!(clock.now() - before, 9 * SECOND);
        assert_eq!(clock.calendar(), set_back + 11 * SECOND);
        assert_eq!(clock.leaps(), 0, "nobody was away");
        assert!((3_599_000..=3_600_000).contains(&clock.skew_ms()), "{}", clock.skew_ms());
    }

    #[test]
    fn steady_time_knows_nothing_of_a_leap() {
        let (apart, clock) = Apart::clock();

        apart.set_wall(START + HOUR);
        apart.pass(SECOND);

        assert_eq!((clock.now(), clock.steady()), (START + HOUR + SECOND, SECOND));
    }
}
