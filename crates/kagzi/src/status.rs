//! Statuses as users read them: the catalogue's, and one more for what only a newer server knows.

/// Makes the enum of a list of the catalogue.
macro_rules! published {
    (
        $(#[$doc:meta])* $enum:ident
        $($number:literal $variant:ident $name:literal $means:literal)+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $enum {
            $(#[doc = $means] $variant,)+
            /// Something that only a newer server knows.
            Unknown,
        }

        impl $enum {
            /// Every status that a server of today knows.
            pub const ALL: [$enum; [$($number),+].len()] = [$($enum::$variant),+];

            /// As it is published, e.g. `COMPLETED`.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)+
                    $enum::Unknown => "UNKNOWN",
                }
            }

            pub(crate) fn from_wire(number: i32) -> $enum {
                match number {
                    $($number => $enum::$variant,)+
                    _ => $enum::Unknown,
                }
            }

            pub(crate) fn to_wire(self) -> i32 {
                match self {
                    $($enum::$variant => $number,)+
                    $enum::Unknown => 0,
                }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use published;
