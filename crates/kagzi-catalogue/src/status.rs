//! The published statuses of runs and of steps.

/// Declares an enum of statuses and, for a program that has a type of its own, a macro that hands the list
/// on: `statuses!(callback)` expands to `callback! { 1 Pending "PENDING" "what it means" … }`.
macro_rules! declare {
    (
        $dollar:tt $(#[$doc:meta])* $enum:ident as $list:ident
        { $($number:literal $variant:ident $name:literal $means:literal)+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $enum {
            $(#[doc = $means] $variant = $number,)+
        }

        impl $enum {
            /// All of them, in the order of their numbers.
            pub const ALL: [$enum; [$($number),+].len()] = [$($enum::$variant),+];

            /// The one with this number, if there is one.
            pub const fn from_number(number: i64) -> Option<$enum> {
                match number {
                    $($number => Some($enum::$variant),)+
                    _ => None,
                }
            }

            /// As users read it.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)+ }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $($enum::$variant => $means,)+ }
            }
        }

        /// Hands the declarations to another macro.
        #[macro_export]
        macro_rules! $list {
            ($dollar then:ident) => { $dollar then! { $($number $variant $name $means)+ } };
        }
    };
}

declare! {
    $
    /// The published status of a run; the numbers are part of the API and of the databases.
    Status as statuses {
        1 Pending "PENDING" "Waits for a worker, or for the time of its next retry."
        2 Running "RUNNING" "A worker executes it."
        3 Sleeping "SLEEPING" "Waits for a time."
        4 Completed "COMPLETED" "The function returned."
        5 Failed "FAILED" "The function returned an error, or an operator ended it."
        6 Cancelled "CANCELLED" "Somebody asked for it."
        7 TimedOut "TIMED_OUT" "Its deadline passed."
        8 Paused "PAUSED" "Waits for a person."
        9 Compensating "COMPENSATING" "Takes back what it did."
    }
}

declare! {
    $
    /// The published status of a step or of one attempt; the numbers are part of the API.
    StepStatus as step_statuses {
        1 Pending "PENDING" "Waits for its next attempt."
        2 Running "RUNNING" "It is executed."
        3 Completed "COMPLETED" "Its result is recorded."
        4 Failed "FAILED" "It failed for good, or this attempt of it did."
        5 Sleeping "SLEEPING" "Waits for a time."
        6 Waiting "WAITING" "Waits for somebody's word."
    }
}
