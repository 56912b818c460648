//! Overlap: what becomes of a time that comes while an earlier run still goes.

use serde::{Deserialize, Serialize};

/// The policy; the numbers are part of the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Overlap {
    /// Start it all the same.
    #[default]
    Allow = 1,
    /// Leave it out, and count it.
    Skip = 2,
    /// Start it when the earlier run has ended; one waits at most.
    BufferOne = 3,
    /// Start them one after the other.
    BufferAll = 4,
    /// Cancel the earlier run and start it at once.
    CancelPrevious = 5,
    /// Terminate the earlier run and start it at once.
    TerminatePrevious = 6,
}

/// What to do with one due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Start,
    Skip,
    Buffer,
    /// End what runs, by cancelling, and start.
    Cancel,
    /// End what runs, by terminating, and start.
    Terminate,
}

impl Overlap {
    /// Every policy, in the order of their numbers.
    pub const ALL: [Overlap; 6] = [
        Overlap::Allow,
        Overlap::Skip,
        Overlap::BufferOne,
        Overlap::BufferAll,
        Overlap::CancelPrevious,
        Overlap::TerminatePrevious,
    ];

    /// The policy's name as users read and type it.
    pub fn name(self) -> &'static str {
        match self {
            Overlap::Allow => "allow",
            Overlap::Skip => "skip",
            Overlap::BufferOne => "buffer-one",
            Overlap::BufferAll => "buffer-all",
            Overlap::CancelPrevious => "cancel-previous",
            Overlap::TerminatePrevious => "terminate-previous",
        }
    }

    /// The policy with this number, if there is one.
    pub fn from_number(number: i64) -> Option<Overlap> {
        Overlap::ALL.into_iter().find(|policy| *policy as i64 == number)
    }

    /// The whole rule. `busy`: an earlier run still goes. `waiting`: earlier times wait in the buffer, which
    /// has room for `room` more.
    pub fn verdict(self, busy: bool, waiting: usize, room: usize) -> Verdict {
        let blocked = busy || waiting > 0;
        match self {
            Overlap::Allow => Verdict::Start,
            Overlap::Skip if busy => Verdict::Skip,
            Overlap::Skip => Verdict::Start,
            Overlap::BufferOne if blocked && waiting > 0 => Verdict::Skip,
            Overlap::BufferAll if blocked && room == 0 => Verdict::Skip,
            Overlap::BufferOne | Overlap::BufferAll if blocked => Verdict::Buffer,
            Overlap::BufferOne | Overlap::BufferAll => Verdict::Start,
            Overlap::CancelPrevious if busy => Verdict::Cancel,
            Overlap::TerminatePrevious if busy => Verdict::Terminate,
            Overlap::CancelPrevious | Overlap::TerminatePrevious => Verdict::Start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_policies_and_states_is_what_was_reviewed() {
        use Verdict::{Buffer, Cancel, Skip, Start, Terminate};
        // (idle, nothing waits), (busy, nothing waits), (idle, one waits), (busy, one waits), (busy, buffer
        // full)
        let table = [
            (Overlap::Allow, [Start, Start, Start, Start, Start]),
            (Overlap::Skip, [Start, Skip, Start, Skip, Skip]),
            (Overlap::BufferOne, [Start, Buffer, Skip, Skip, Skip]),
            (Overlap::BufferAll, [Start, Buffer, Buffer, Buffer, Skip]),
            (Overlap::CancelPrevious, [Start, Cancel, Start, Cancel, Cancel]),
            (Overlap::TerminatePrevious, [Start, Terminate, Start, Terminate, Terminate]),
        ];

        for (policy, expected) in table {
            let states = [(false, 0, 9), (true, 0, 9), (false, 1, 8), (true, 1, 8), (true, 9, 0)];
            let verdicts = states.map(|(busy, waiting, room)| policy.verdict(busy, waiting, room));
            assert_eq!(verdicts, expected, "{policy:?}");
        }
        assert_eq!(table.map(|(policy, _)| policy), Overlap::ALL);
    }

    #[test]
    fn numbers_and_policies_are_one_to_one() {
        for policy in Overlap::ALL {
            assert_eq!(Overlap::from_number(policy as i64), Some(policy));
        }
        assert_eq!(Overlap::from_number(0), None);
    }
}
