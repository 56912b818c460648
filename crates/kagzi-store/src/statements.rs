//! Statements of a table, each named once: as a constant, which is on the list that tests prepare and plan.

/// A statement's name, for tests and messages, and its text.
pub type StatementEntry = (&'static str, &'static str);

/// Declares the statements of one table as constants, and the list of all of them.
#[macro_export]
macro_rules! statements {
    (
        $(#[$about:meta])*
        $list:ident:
        $($(#[$doc:meta])* $seen:vis const $name:ident: &str = $sql:expr;)+
    ) => {
        $($(#[$doc])* $seen const $name: &str = $sql;)+

        $(#[$about])*
        pub const $list: &[$crate::StatementEntry] = &[$((stringify!($name), $name)),+];
    };
}
