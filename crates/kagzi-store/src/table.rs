//! Rows of one kind as the lane knows them: loaded when they are needed, changed in memory, written with the
//! batch. Workers, schedules, namespaces and gates stand on it; a new noun does too.

use kagzi_model::Entity;

use crate::{
    Changes,
    hash::{HashMap, HashSet},
};

/// A row, and what is kept beside it in memory alone.
pub struct Known<E, B> {
    pub row: E,
    pub beside: B,
}

/// How a changed row is written.
enum Pending {
    /// Made by its first use.
    Implicit,
    Insert,
    Update {
        from: u64,
    },
    Delete {
        from: u64,
    },
    /// Deleted, and made anew in the same batch.
    Replace {
        from: u64,
    },
}

/// Rows that are known so far, and what of them is not written yet.
pub struct Table<E: Entity, B = ()> {
    known: HashMap<E::Key, Known<E, B>>,
    pending: HashMap<E::Key, Pending>,
    /// Rows that were loaded or changed since the turn began. If it fails they are not true.
    touched: HashSet<E::Key>,
}

impl<E: Entity, B> Default for Table<E, B> {
    fn default() -> Self {
        Table { known: HashMap::default(), pending: HashMap::default(), touched: HashSet::default() }
    }
}

impl<E: Entity, B: Default> Table<E, B> {
    /// A turn begins.
    pub fn begin(&mut self) {
        self.touched.clear();
    }

    pub fn get(&self, key: &E::Key) -> Option<&E> {
        self.known.get(key).map(|known| &known.row)
    }

    pub fn known(&self, key: &E::Key) -> Option<&Known<E, B>> {
        self.known.get(key)
    }

    /// What is known of a row has changed in this turn, here or in the database.
    pub fn touch(&mut self, key: E::Key) {
        self.touched.insert(key);
    }

    /// For changing what is kept beside the row. It is the turn's own affair, and forgotten with it.
    pub fn beside_mut(&mut self, key: &E::Key) -> Option<&mut B> {
        let known = self.known.get_mut(key)?;
        self.touched.insert(key.clone());
        Some(&mut known.beside)
    }

    pub fn contains(&self, key: &E::Key) -> bool {
        self.known.contains_key(key)
    }

    /// The row need not be loaded: it is known, or it was deleted in this batch.
    pub fn is_settled(&self, key: &E::Key) -> bool {
        self.known.contains_key(key) || self.pending.contains_key(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &E::Key> {
        self.known.keys()
    }

    /// Something of this turn has not been written yet.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Adds a row that was loaded, with what is kept beside it.
    pub fn know(&mut self, row: E, beside: B) {
        let key = row.key();
        self.touched.insert(key.clone());
        self.known.insert(key, Known { row, beside });
    }

    /// Forgets a row without unwritten changes, so that it is loaded again. False when it has some.
    pub fn evict(&mut self, key: &E::Key) -> bool {
        if self.pending.contains_key(key) {
            return false;
        }
        self.known.remove(key);
        true
    }

    /// Forgets a row, written or not.
    pub fn forget(&mut self, key: &E::Key) {
        self.known.remove(key);
        self.pending.remove(key);
    }

    /// Takes over a row that is new or was changed; what is kept beside it stays.
    pub fn put(&mut self, row: E) {
        let key = row.key();
        self.touched.insert(key.clone());
        let from = self.known.get(&key).map(|known| known.row.version());
        let pending = match (self.pending.remove(&key), from) {
            (Some(Pending::Update { from }), _) | (None, Some(from)) => Pending::Update { from },
            (Some(Pending::Implicit | Pending::Insert), _) | (None, None) => Pending::Insert,
            (Some(Pending::Delete { from } | Pending::Replace { from }), _) => Pending::Replace { from },
        };
        self.pending.insert(key.clone(), pending);
        match self.known.get_mut(&key) {
            Some(known) => known.row = row,
            None => drop(self.known.insert(key, Known { row, beside: B::default() })),
        }
    }

    /// Takes over a row that is made by its first use: another server may be first with the very same.
    pub fn put_implicit(&mut self, row: E) {
        let key = row.key();
        self.pending.insert(key, Pending::Implicit);
        self.know(row, B::default());
    }

    /// Changes a row where it is. The change raises its version.
    pub fn change(&mut self, key: &E::Key, change: impl FnOnce(&mut E)) {
        let Some(known) = self.known.get_mut(key) else { return };
        self.touched.insert(key.clone());
        let from = known.row.version();
        self.pending.entry(key.clone()).or_insert(Pending::Update { from });
        change(&mut known.row);
    }

    /// Deletes a row.
    pub fn delete(&mut self, key: &E::Key) {
        let Some(known) = self.known.remove(key) else { return };
        self.touched.insert(key.clone());
        let pending = match self.pending.remove(key) {
            // It was never there.
            Some(Pending::Implicit | Pending::Insert) => return,
            Some(Pending::Update { from } | Pending::Delete { from } | Pending::Replace { from }) => {
                Pending::Delete { from }
            }
            None => Pending::Delete { from: known.row.version() },
        };
        self.pending.insert(key.clone(), pending);
    }

    /// What changed, to be written now.
    pub fn drain(&mut self) -> Changes<E> {
        let mut changes = Changes::default();
        for (key, pending) in self.pending.drain() {
            let row = self.known.get(&key).map(|known| known.row.clone());
            match pending {
                Pending::Implicit => changes.implicit.extend(row),
                Pending::Insert => changes.inserted.extend(row),
                Pending::Update { from } => changes.updated.extend(row.map(|row| (from, row))),
                Pending::Delete { from } => changes.deleted.push((key, from)),
                Pending::Replace { from } => {
                    changes.deleted.push((key, from));
                    changes.inserted.extend(row);
                }
            }
        }
        changes
    }

    /// The turn failed: what it loaded or changed is forgotten. Answers with the keys.
    pub fn forget_turn(&mut self) -> HashSet<E::Key> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.extend(self.pending.drain().map(|(key, _)| key));
        touched.iter().for_each(|key| drop(self.known.remove(key)));
        touched
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        *self = Table::default();
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Name, Namespace, Timestamp};

    use super::*;

    fn namespace(name: &str, version: u64) -> Namespace {
        Namespace { version, ..Namespace::new(name.into(), Timestamp(0)) }
    }

    fn table(rows: &[(&str, u64)]) -> Table<Namespace> {
        let mut table = Table::default();
        rows.iter().for_each(|(name, version)| table.know(namespace(name, *version), ()));
        table.begin();
        table
    }

    #[test]
    fn a_row_that_changes_twice_is_written_once_over_the_version_that_the_database_has() {
        let mut table = table(&[("shop", 4)]);

        table.put(namespace("shop", 5));
        table.put(namespace("shop", 6));
        let first = table.drain();
        table.change(&"shop".into(), |row| row.version += 1);
        let second = table.drain();

        assert_eq!(first.updated, [(4, namespace("shop", 6))]);
        assert_eq!(second.updated, [(6, namespace("shop", 7))]);
        assert!(table.drain().is_empty());
    }

    #[test]
    fn what_is_made_and_deleted_in_one_batch_was_never_there() {
        let mut table = table(&[("old", 3)]);

        table.put(namespace("new", 1));
        table.delete(&"new".into());
        table.delete(&"old".into());
        let gone = table.drain();
        table.put(namespace("old", 1));

        assert_eq!((gone.inserted.len(), gone.deleted), (0, vec![(Name::from("old"), 3)]));
        assert_eq!(table.drain().inserted, [namespace("old", 1)]);
    }

    #[test]
    fn what_is_deleted_and_made_anew_is_both_in_the_same_batch() {
        let mut table = table(&[("shop", 3)]);

        table.delete(&"shop".into());
        table.put(namespace("shop", 1));
        table.put(namespace("shop", 2));
        let changes = table.drain();

        assert_eq!(changes.deleted, [(Name::from("shop"), 3)]);
        assert_eq!((changes.inserted, changes.updated.len()), (vec![namespace("shop", 2)], 0));
    }

    #[test]
    fn a_failed_turn_forgets_what_it_loaded_and_changed_and_nothing_else() {
        let mut table = table(&[("shop", 4), ("bank", 1)]);
        table.put(namespace("shop", 5));
        table.know(namespace("mail", 1), ());

        table.forget_turn();

        assert!(table.contains(&"bank".into()) && table.drain().is_empty());
        assert!(!table.contains(&"shop".into()) && !table.contains(&"mail".into()));
    }

    #[test]
    fn a_row_with_an_unwritten_change_is_not_evicted() {
        let mut table = table(&[("shop", 4), ("bank", 1)]);
        table.put(namespace("shop", 5));

        assert!(!table.evict(&"shop".into()) && table.evict(&"bank".into()));
        assert!(table.contains(&"shop".into()) && !table.contains(&"bank".into()));
    }

    #[test]
    fn what_its_first_use_made_and_an_operator_changed_is_new() {
        let mut table = table(&[]);
        table.put_implicit(namespace("shop", 1));
        table.put(namespace("shop", 2));

        let changes = table.drain();

        assert_eq!((changes.implicit.len(), changes.inserted), (0, vec![namespace("shop", 2)]));
    }
}
