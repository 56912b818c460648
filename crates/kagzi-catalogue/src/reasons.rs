//! Why a living run will move again: one word each.

use crate::Status;

macro_rules! reasons {
    ($dollar:tt $($variant:ident $name:literal $status:ident $means:literal)+) => {
        /// Why a living run will move again. The words are part of the API and of the databases.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $means] $variant,)+
        }

        impl Reason {
            /// All of them.
            pub const ALL: [Reason; [$($name),+].len()] = [$(Reason::$variant),+];

            /// In one word.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)+ }
            }

            /// The status of the runs that have it.
            pub const fn status(self) -> Status {
                match self { $(Reason::$variant => Status::$status,)+ }
            }

            /// What the run waits for.
            pub const fn meaning(self) -> &'static str {
                match self { $(Reason::$variant => $means,)+ }
            }

            /// The reason of this name.
            pub fn from_name(name: &str) -> Option<Reason> {
                Reason::ALL.into_iter().find(|reason| reason.name() == name)
            }
        }

        /// Hands the declarations to another macro.
        #[macro_export]
        macro_rules! reasons_to_wake {
            ($dollar then:ident) => { $dollar then! { $($variant $name $status $means)+ } };
        }
    };
}

reasons! {
    $
    Ready "ready" Pending "A worker with room."
    Leased "leased" Running "The worker that executes it."
    Timer "timer" Sleeping "The end of a sleep."
    Retry "retry" Pending "The time of a retry."
    Signal "signal" Sleeping "Somebody's word on a channel."
    Child "child" Sleeping "The end of a child."
    Event "event" Sleeping "An event that is published on a topic."
    Person "person" Paused "The answer of a person to its question."
    Paused "paused" Paused "A person."
}
