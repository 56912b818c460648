//! What becomes of failures: classes, rungs and severities. `handling/matrix.rs` has what is known of kinds
//! of steps and their codes, `handling/http.rs` of HTTP statuses, `handling/known_codes.rs` of codes alone.
//! The rule that reads them is in `kagzi-model/src/ruling.rs`; docs/failures.md is written from here.

pub mod http;
pub mod known_codes;
pub mod matrix;

use serde::{Deserialize, Serialize};

/// Declares a closed set with number, name and meaning.
macro_rules! declare {
    ($(#[$doc:meta])* $enum:ident { $($number:literal $variant:ident $name:literal $means:literal)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum $enum {
            $(#[doc = $means] #[serde(rename = $name)] $variant = $number,)+
        }

        impl $enum {
            /// All of them, in the order of their numbers.
            pub const ALL: [$enum; [$($number),+].len()] = [$($enum::$variant),+];

            /// The one with this number, if there is one.
            pub const fn from_number(number: u64) -> Option<$enum> {
                match number {
                    $($number => Some($enum::$variant),)+
                    _ => None,
                }
            }

            /// The one with this name, if there is one.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|one| one.name() == name)
            }

            /// The number that is stored and sent.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// As it is stored and as users write it.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)+ }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $($enum::$variant => $means,)+ }
            }
        }
    };
}

declare! {
    /// What sort of failure it is.
    Class {
        1 Transient "transient" "It passes by itself: a timeout, a rate limit, a server that restarts."
        2 Recoverable "recoverable" "Another way may work: credentials have run out, a resource has moved."
        3 UserResolvable "user_resolvable" "A person has to do something: give a right, solve a captcha."
        4 Permanent "permanent" "It stays as it is: the input is wrong, a rule of the business forbids it."
        5 Catastrophic "catastrophic" "The machine itself fails: a full disk, no memory, a broken store."
        6 Unknown "unknown" "Nothing is known of it."
    }
}

declare! {
    /// What is done about a failure. Each is a bit, and the next is always a higher one.
    Rung {
        1 Retry "retry" "The same again, after a while."
        2 Replan "replan" "Another way to the same result."
        4 AskUser "ask_user" "A person decides."
        8 Rollback "rollback" "What was done is undone, and the run fails."
        16 Escalate "escalate" "An incident, for whoever is on call."
    }
}

declare! {
    /// How bad an incident is.
    Severity {
        1 Low "low" "It can wait for a working day."
        2 High "high" "Somebody should look today."
        3 Critical "critical" "Somebody has to get up."
    }
}

impl Class {
    /// Where a failure of this class begins to climb when nothing more is known of it.
    pub const fn first(self) -> Rung {
        match self {
            Class::Transient | Class::Unknown => Rung::Retry,
            Class::Recoverable => Rung::Replan,
            Class::UserResolvable => Rung::AskUser,
            Class::Permanent => Rung::Rollback,
            Class::Catastrophic => Rung::Escalate,
        }
    }

    /// How often a failure of this class is executed when nobody says a number.
    pub const fn executions(self) -> Option<i32> {
        match self {
            Class::Unknown => Some(3),
            Class::Transient
            | Class::Recoverable
            | Class::UserResolvable
            | Class::Permanent
            | Class::Catastrophic => None,
        }
    }
}

impl Rung {
    /// What histories and metrics call a failure that ended on this rung.
    pub const fn resolution(self) -> &'static str {
        match self {
            Rung::Retry => "retry_scheduled",
            Rung::Replan => "replanned",
            Rung::AskUser => "awaiting_user",
            Rung::Rollback => "rolled_back",
            Rung::Escalate => "escalated",
        }
    }
}

/// How often and how far apart something is tried again. What is not set is inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tries {
    /// Executions in total, the first included.
    pub executions: Option<i32>,
    /// The shape of the delays, the first and the longest in milliseconds.
    pub delays: Option<(crate::Backoff, u64, u64)>,
}

impl Tries {
    /// So many executions, with the delays of whoever else has a say.
    pub const fn times(executions: i32) -> Tries {
        Tries { executions: Some(executions), delays: None }
    }

    /// So many executions with delays of this shape, the first and the longest in milliseconds.
    pub const fn apart(executions: i32, shape: crate::Backoff, first_ms: u64, longest_ms: u64) -> Tries {
        Tries { executions: Some(executions), delays: Some((shape, first_ms, longest_ms)) }
    }
}

/// What a worker does before it tries again, as far as it is built in: for the step's kind and the code, else
/// for the HTTP status.
pub fn before_retry(kind: Option<&str>, code: &str, status: Option<u16>) -> Option<&'static str> {
    let cell = kind.and_then(|kind| matrix::find(kind, code));
    let line = status.and_then(http::find);
    cell.map(|cell| cell.before_retry).unwrap_or_else(|| line.and_then(|line| line.before_retry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_bits_that_rise() {
        let mut seen = 0;
        for rung in Rung::ALL {
            assert_eq!(rung.number().count_ones(), 1, "{rung:?}");
            assert!(rung.number() > seen, "{rung:?} is above all before it");
            seen |= rung.number();
        }
        assert_eq!(seen, 0b1_1111);
    }

    #[test]
    fn names_and_numbers_lead_back() {
        for class in Class::ALL {
            assert_eq!(Class::from_name(class.name()), Some(class));
            assert_eq!(Class::from_number(class.number().into()), Some(class));
        }
        assert_eq!((Class::from_name("Transient"), Rung::from_number(3)), (None, None));
    }
}
