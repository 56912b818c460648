//! The world failed, as opposed to a `Rejection`, where the caller asked for the impossible.

/// Why a store could not do its work. Which variant it is decides what the caller does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Try again: the database is away, busy, or the server is stopping.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Somebody else wrote first: load again and repeat. The lane does so by itself.
    #[error("another server changed the same rows: {0}")]
    Conflict(String),
    /// A row with this key exists. Somebody else was first, and loading again shows it; or the key is taken
    /// for good.
    #[error("a row of this key exists already: {0}")]
    Duplicate(String),
    /// No room: reads still work, writes will once there is space.
    #[error("the store is full: {0}")]
    Full(String),
    /// A row cannot be read back; a person must look.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
    /// The database's file itself is damaged. Seen once, nothing more is read from it or written to it.
    #[error("{0}")]
    Damaged(String),
    /// Our mistake.
    #[error("the store was misused: {0}")]
    Bug(String),
}

impl StoreError {
    /// The store as a whole does not work at the moment. Everything else is about what was asked of it, and
    /// whoever asked for something else is not concerned.
    pub fn is_away(&self) -> bool {
        match self {
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Damaged(_) => true,
            StoreError::Conflict(_) | StoreError::Duplicate(_) => false,
            StoreError::Corrupt(_) | StoreError::Bug(_) => false,
        }
    }
}
