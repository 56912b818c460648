//! Turns that nobody took: the function was told of an end, and nobody looked.
//!
//! The items of a `FuturesUnordered` are not looked at while the loop's body awaits something else. What ends
//! meanwhile is handed out later, and such a stream hands out in the order in which its items were woken. It
//! counts every wake, also those that are no part of the record: a timer, bytes of a step's code, an answer
//! of the server. So whoever missed its turn and is looked at by such a poller is not ready at once. It is
//! noted here, and when the function stands still the oldest of them has its turn again, alone, like any
//! other release. Then the order of the record decides, whatever was woken in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Something whose end the function is told of.
pub(crate) trait Told: Send + Sync {
    /// It has its turn once more, if it still waits for one.
    fn offer(self: Arc<Self>);

    /// The function stands still: the turn is over.
    fn pass(&self);

    /// Whoever has it is to look again.
    fn wake(self: Arc<Self>);
}

/// Where something stands that the function is told of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    #[default]
    Comes,
    /// It is ready, and nothing else is: until the function stands still.
    Here(u64),
    /// Nobody looked at it meanwhile.
    Missed(u64),
    /// The same for a turn that it had once more.
    HereAgain,
    /// It was offered in vain, so whoever holds it looks from time to time only. From now on it is ready.
    Stays,
    Taken,
}

/// What somebody who looks at it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    NotYet,
    Ready,
    /// Not before the function stands still; it is to be noted under this number.
    Later(u64),
}

impl Turn {
    /// `directly`: by the function itself and not by one of those who keep lists of whom to poll.
    pub(crate) fn look(&mut self, directly: bool) -> Look {
        match *self {
            Turn::Comes => Look::NotYet,
            Turn::Missed(number) if !directly => Look::Later(number),
            Turn::Here(_) | Turn::Missed(_) | Turn::HereAgain | Turn::Stays | Turn::Taken => {
                *self = Turn::Taken;
                Look::Ready
            }
        }
    }

    /// True: it waits for this.
    pub(crate) fn offer(&mut self) -> bool {
        let waits = matches!(self, Turn::Missed(_));
        if waits {
            *self = Turn::HereAgain;
        }
        waits
    }

    pub(crate) fn pass(&mut self) {
        match *self {
            Turn::Here(number) => *self = Turn::Missed(number),
            Turn::HereAgain => *self = Turn::Stays,
            Turn::Comes | Turn::Missed(_) | Turn::Stays | Turn::Taken => {}
        }
    }
}

/// Those of one run that missed their turn and were looked at since.
#[derive(Default)]
pub(crate) struct Missed {
    /// By the number of their turn.
    looked_at: Mutex<BTreeMap<u64, Arc<dyn Told>>>,
    /// There are some: asked whenever anything is taken.
    any: AtomicBool,
    turns: AtomicU64,
}

impl Missed {
    /// The number of the next turn.
    pub(crate) fn number(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn note(&self, number: u64, told: Arc<dyn Told>) {
        self.any.store(true, Ordering::SeqCst);
        let before = self.looked_at.lock().insert(number, told);
        drop(before);
    }

    /// Something was taken, so the function goes on and may look at others than before. Whoever it still
    /// looks at is noted again.
    pub(crate) fn taken(&self) {
        if self.any.swap(false, Ordering::SeqCst) {
            let all = std::mem::take(&mut *self.looked_at.lock());
            all.into_values().for_each(Told::wake);
        }
    }

    /// The one whose turn was first.
    pub(crate) fn oldest(&self) -> Option<Arc<dyn Told>> {
        if !self.any.load(Ordering::SeqCst) {
            return None;
        }
        let oldest = self.looked_at.lock().pop_first().map(|(_, told)| told);
        if oldest.is_none() {
            self.any.store(false, Ordering::SeqCst);
        }
        oldest
    }

    /// The run is over: whoever is left holds it no longer.
    pub(crate) fn clear(&self) {
        let left = std::mem::take(&mut *self.looked_at.lock());
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_ready_until_the_function_stands_still_and_then_comes_once_more() {
        let mut turn = Turn::default();
        assert_eq!(turn.look(true), Look::NotYet);

        turn = Turn::Here(7);
        turn.pass();
        assert_eq!(turn.look(false), Look::Later(7));
        assert!(turn.offer());
        assert_eq!(turn.look(false), Look::Ready);
        assert!(!turn.offer(), "it was taken");
    }

    #[test]
    fn whoever_looks_directly_waits_for_nothing() {
        let mut turn = Turn::Here(7);
        turn.pass();

        assert_eq!(turn.look(true), Look::Ready);
    }

    /// A future that is only looked at from time to time would miss every turn.
    #[test]
    fn a_turn_that_was_offered_in_vain_stays() {
        let mut turn = Turn::Here(7);
        turn.pass();
        assert!(turn.offer());
        turn.pass();

        assert_eq!(turn.look(false), Look::Ready);
    }

    struct Named(&'static str, Mutex<Vec<&'static str>>);

    impl Told for Named {
        fn offer(self: Arc<Self>) {}

        fn pass(&self) {}

        fn wake(self: Arc<Self>) {
            self.1.lock().push(self.0);
        }
    }

    #[test]
    fn the_oldest_comes_first_and_what_is_taken_wakes_the_others() {
        let missed = Missed::default();
        let named = |name| Arc::new(Named(name, Mutex::default()));
        let (first, second, third) = (named("first"), named("second"), named("third"));
        let numbers = [missed.number(), missed.number(), missed.number()];
        missed.note(numbers[2], third.clone());
        missed.note(numbers[0], first.clone());
        missed.note(numbers[1], second.clone());

        missed.oldest().unwrap().wake();
        assert_eq!(*first.1.lock(), ["first"]);
        missed.taken();
        assert_eq!((&**second.1.lock(), &**third.1.lock()), (&["second"][..], &["third"][..]));
        assert!(missed.oldest().is_none());
    }
}
