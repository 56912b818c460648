//! The shapes of the delays between attempts. Their formulas are in `kagzi-model/src/backoff.rs`.

use serde::{Deserialize, Serialize};

macro_rules! backoffs {
    ($($number:literal $variant:ident $name:literal $delay:literal $example:literal $means:literal)+) => {
        /// The shape of the delays between attempts. `n` is the number of failures so far. The numbers are
        /// part of the API and of the histories, the names of the databases.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Backoff {
            $(#[doc = $means] #[serde(rename = $name)] $variant = $number,)+
        }

        impl Backoff {
            /// Every shape.
            pub const ALL: [Backoff; [$($number),+].len()] = [$(Backoff::$variant),+];

            /// The shape with this number, if there is one.
            pub const fn from_number(number: u64) -> Option<Backoff> {
                match number {
                    $($number => Some(Backoff::$variant),)+
                    _ => None,
                }
            }

            /// The number that is stored and sent.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// As it is stored and documented.
            pub const fn name(self) -> &'static str {
                match self { $(Backoff::$variant => $name,)+ }
            }

            /// The formula, and what it gives with an initial interval of 1 s, coefficient 2 and at most
            /// 60 s: for the documentation.
            pub const fn formula(self) -> (&'static str, &'static str) {
                match self { $(Backoff::$variant => ($delay, $example),)+ }
            }
        }
    };
}

backoffs! {
    1 Fixed "fixed" "initial" "1, 1, 1, …"
        "Always `initial_interval`."
    2 Exponential "exponential" "initial × coefficient^(n-1)" "1, 2, 4, 8, 16, 32, 60, …"
        "`initial_interval × backoff_coefficient^(n-1)`."
    3 ExponentialJitter "exponential_jitter" "exponential × (1 − j + r × 2j)"
        "0.5–1.5, 1–3, 2–6, … with j = 0.5"
        "The same, times a factor between `1 - jitter` and `1 + jitter`."
    4 FullJitter "full_jitter" "exponential × r" "0–1, 0–2, 0–4, …"
        "Anything between zero and the exponential delay."
    5 Linear "linear" "initial × n" "1, 2, 3, 4, …"
        "`initial_interval × n`."
    6 Fibonacci "fibonacci" "initial × 1, 1, 2, 3, 5, …" "1, 1, 2, 3, 5, 8, 13, …"
        "`initial_interval × 1, 1, 2, 3, 5, …`."
    7 Custom "custom" "the n-th of `schedule`, then the cap" "as listed"
        "The n-th delay of the schedule, then the longest."
    8 FromHeader "from_header" "what the error's retry-after says, else initial" ""
        "What the failure says (a `RetryAfterError`), else `initial_interval`."
}
