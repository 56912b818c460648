//! What the steps of a run have said of how far they are, and how soon one more word is worth a line.
//!
//! Only the newest word of a step is ever read, but a history never forgets. So the more was said, the rarer
//! what is said is kept: a step that speaks every half second for ten hours leaves twelve thousand lines
//! instead of seventy-two thousand, and its next attempt begins at most some seconds behind its last word.

use std::collections::HashMap;

use crate::{
    Millis, Name, Timestamp,
    limits::{PROGRESS_BYTES_MAX, PROGRESS_FREE_MS},
};

/// Each word that was kept makes the pause before the next one longer by so much.
const MICROS_PER_WORD: u64 = 500;
/// And so does each KiB of them: words of 10 KiB fill their share of a history in a day.
const MICROS_PER_KIB: u64 = 1_700;

/// The words that were kept, of all steps together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgressKept {
    len: u64,
    bytes: u64,
    /// When each step was last heard, so that steps side by side do not silence each other.
    last_at: HashMap<Name, Timestamp>,
}

impl ProgressKept {
    /// Whether a word of this step is kept now.
    pub fn keeps(&self, now: Timestamp, step: &Name, bytes: u64) -> bool {
        let heard = self.last_at.get(step);
        self.bytes.saturating_add(bytes) <= PROGRESS_BYTES_MAX
            && heard.is_none_or(|last| now >= last.plus_ms(self.pause_ms()))
    }

    /// How long a step is not listened to after its last word that was kept.
    pub fn pause_ms(&self) -> Millis {
        let micros = self.len * MICROS_PER_WORD + self.bytes / 1024 * MICROS_PER_KIB;
        let pause_ms = Millis::try_from(micros / 1000).unwrap_or(Millis::MAX);
        // Up to here nothing is thinned out: workers of ours speak no more often than that.
        if pause_ms < PROGRESS_FREE_MS { 0 } else { pause_ms }
    }

    pub(super) fn heard(&mut self, at: Timestamp, step: &Name) {
        self.len += 1;
        self.last_at.insert(step.clone(), at);
    }

    pub(super) fn weigh(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that speaks every half second for so many hours; what is kept, and the longest silence in ms.
    fn speak(hours: i64, word_bytes: u64) -> (ProgressKept, i64) {
        let (mut kept, step) = (ProgressKept::default(), Name::from("copy"));
        let (mut last, mut silence) = (0, 0);
        for at in (0..hours * 3_600_000).step_by(500) {
            let now = Timestamp::from_millis(at);
            if kept.keeps(now, &step, word_bytes) {
                kept.heard(now, &step);
                kept.weigh(word_bytes);
                (last, silence) = (at, silence.max(at - last));
            }
        }
        (kept, silence)
    }

    #[test]
    fn ten_hours_of_short_words_are_a_sixth_of_the_lines_and_never_long_out_of_date() {
        let (kept, silence) = speak(10, 20);

        assert!((10_000..13_000).contains(&kept.len), "{}", kept.len);
        assert!(silence <= 8_000, "{silence} ms");
    }

    #[test]
    fn a_day_of_long_words_stays_within_their_share_and_goes_on_to_the_end() {
        let (kept, silence) = speak(23, 10 * 1024);

        assert!(kept.bytes <= PROGRESS_BYTES_MAX, "{}", kept.bytes);
        assert!(silence <= 60_000, "{silence} ms");
    }

    #[test]
    fn the_first_words_are_all_kept_and_steps_side_by_side_are_heard_alike() {
        let (mut kept, now) = (ProgressKept::default(), Timestamp::from_millis(1));
        let (copy, check) = (Name::from("copy"), Name::from("check"));
        for _ in 0..900 {
            assert!(kept.keeps(now, &copy, 10));
            kept.heard(now, &copy);
        }
        (0..600).for_each(|_| kept.heard(now, &copy));

        assert!(!kept.keeps(now, &copy, 10), "{} ms", kept.pause_ms());
        assert!(kept.keeps(now, &check, 10));
    }
}
