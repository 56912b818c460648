//! From one declaration: the enum, numbers, names, the binary form, JSON, samples for tests and the tables of
//! `docs/events.md`.

use super::wire::Field;

/// What is declared of one kind of event.
#[derive(Debug, Clone, Copy)]
pub struct KindInfo {
    /// The part of the documentation that it stands in.
    pub section: &'static str,
    /// What databases store; never reused.
    pub number: u8,
    /// What users read.
    pub name: &'static str,
    /// From which level of the database on it may be written.
    pub level: u8,
    /// When it is written, as a doc comment has it.
    pub meaning: &'static [&'static str],
    /// What its payload is, if it has one.
    pub payload: Option<&'static str>,
    /// It is about one step.
    pub of_step: bool,
    pub fields: &'static [Field],
}

/// Declares every kind of event: number, name, the level from which on it may be written (1 where none is
/// said), the step it is about, the status of the run that it ends, its payload, its fields with their
/// numbers, and in doc comments what it means. Fields are only ever added, numbers never reused. A field that
/// may be missing has serde's attribute, so that it is missing in JSON too.
macro_rules! events {
    ($(
        $section:literal {
            $(
                $(#[doc = $meaning:literal])*
                $number:literal $variant:ident $name:literal
                $(level $level:literal)?
                $(step($step:ident $(, $attempt:ident)?))?
                $(ends $ends:ident)?
                $(payload $payload:literal)?
                $({ $(
                    $(#[doc = $says:literal])*
                    $(#[serde $serde:tt])?
                    $tag:literal $field:ident: $type:ty
                ),* $(,)? })?
                ;
            )*
        }
    )*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub enum EventKind {
            $($(
                $(#[doc = $meaning])*
                #[serde(rename = $name)]
                $variant $({ $(
                    $(#[doc = $says])*
                    $(#[serde $serde])?
                    $field: $type,
                )* })?,
            )*)*
            /// A line that this server does not understand: a newer one wrote it, or it is damaged. It is
            /// kept and shown as it is stored, and its run is left alone here.
            #[serde(skip)]
            Unknown { number: u8, name: Name, record: Box<[u8]> },
        }

        /// Which kind an event is of, without what it says.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($($variant = $number,)*)*
        }

        impl EventKind {
            /// Every kind, in the order of the documentation.
            pub const KINDS: &'static [KindInfo] = &[
                $($(KindInfo {
                    section: $section,
                    number: $number,
                    name: $name,
                    level: events!(@level $($level)?),
                    meaning: &[$($meaning),*],
                    payload: events!(@given $($payload)?),
                    of_step: events!(@is $($step)?),
                    fields: &[$($(Field {
                        number: $tag,
                        name: stringify!($field),
                        meaning: concat!($($says),*),
                        proto: <$type as Wire>::PROTO,
                    },)*)?],
                },)*)*
            ];

            /// The number that databases store; never reused.
            pub fn number(&self) -> u8 {
                match self {
                    $($(EventKind::$variant { .. } => $number,)*)*
                    EventKind::Unknown { number, .. } => *number,
                }
            }

            /// From which level of the database on it may be written.
            pub fn level(&self) -> u8 {
                match self {
                    $($(EventKind::$variant { .. } => events!(@level $($level)?),)*)*
                    // It is kept where it came from, and never written anew.
                    EventKind::Unknown { .. } => 0,
                }
            }

            /// What its payload is, if events of its kind have one.
            pub fn payload_is(&self) -> Option<&'static str> {
                match self {
                    $($(EventKind::$variant { .. } => events!(@given $($payload)?),)*)*
                    EventKind::Unknown { .. } => None,
                }
            }

            /// The name that users read.
            pub fn name(&self) -> &str {
                match self {
                    $($(EventKind::$variant { .. } => $name,)*)*
                    EventKind::Unknown { name, .. } => name,
                }
            }

            /// The step it is about, and the attempt, if any.
            pub fn step(&self) -> Option<(&Name, u32)> {
                match self {
                    $($(EventKind::$variant { $($step, $($attempt,)?)? .. } => {
                        events!(@step $($step $(, $attempt)?)?)
                    })*)*
                    EventKind::Unknown { .. } => None,
                }
            }

            /// The status of the run that it ends.
            pub fn ends_as(&self) -> Option<Status> {
                match self {
                    $($(EventKind::$variant { .. } => events!(@ends $($ends)?),)*)*
                    EventKind::Unknown { .. } => None,
                }
            }

            /// One event of each kind, for tests: every field says something.
            pub fn samples() -> Vec<EventKind> {
                vec![$($(EventKind::$variant { $($($field: Wire::sample(),)*)? },)*)*]
            }

            /// Appends the fields. What is not understood is kept as it came.
            pub(super) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($(EventKind::$variant { $($($field,)*)? } => {
                        $($(Wire::put($field, $tag, out);)*)?
                    })*)*
                    EventKind::Unknown { record, .. } => out.extend_from_slice(record),
                }
            }

            /// Reads the fields; `other` is given those that the kind does not have. None when it is no such
            /// record.
            fn known(number: u8, record: &[u8], mut other: impl FnMut(u32, Value<'_>)) -> Option<EventKind> {
                let mut rest = record;
                match number {
                    $($($number => {
                        $($(let mut $field: Option<$type> = None;)*)?
                        while !rest.is_empty() {
                            let (field, value) = take_field(&mut rest)?;
                            match field {
                                $($($tag => Wire::take(&mut $field, value)?,)*)?
                                field => other(field, value),
                            }
                        }
                        Some(EventKind::$variant { $($($field: match $field {
                            Some(value) => value,
                            None => Wire::absent()?,
                        },)*)? })
                    })*)*
                    _ => None,
                }
            }
        }
    };

    (@given) => { None };
    (@given $payload:literal) => { Some($payload) };
    (@level) => { 1 };
    (@level $level:literal) => { $level };
    (@ends) => { None };
    (@ends $ends:ident) => { Some(Status::$ends) };
    (@is) => { false };
    (@is $step:ident) => { true };
    (@step) => { None };
    (@step $step:ident) => { Some(($step, 0)) };
    (@step $step:ident, $attempt:ident) => { Some(($step, *$attempt)) };
}
pub(super) use events;
