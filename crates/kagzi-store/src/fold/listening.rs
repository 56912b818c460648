//! Which runs of a batch wait for published events, before it and after it: the difference is written. A run
//! that never waited for one costs a look at one bit.

use std::collections::BTreeSet;

use kagzi_model::{Aggregate, Name, RunId, Topic, TopicKey};

use crate::{
    SubscriptionRow,
    cache::Cache,
    hash::{HashMap, HashSet},
};

/// The waits for events of the runs that a batch changed.
#[derive(Default)]
pub struct Listening {
    /// The channels on which each of them waited when it was written last.
    written: HashMap<RunId, BTreeSet<Name>>,
    /// What was written as opened in this batch.
    opened: HashSet<SubscriptionRow>,
}

impl Listening {
    /// The run is about to change.
    #[inline]
    pub fn before(&mut self, id: RunId, cache: &Cache) {
        if let Some(entry) = cache.get(id)
            && entry.aggregate.has_waited_for_events()
        {
            self.written.entry(id).or_insert_with(|| entry.aggregate.listens());
        }
    }

    /// The run has changed.
    #[inline]
    pub fn after(&mut self, id: RunId, seen: &Aggregate) {
        if seen.has_waited_for_events() {
            // It had not waited for one before.
            self.written.entry(id).or_default();
        }
    }

    /// No run of this batch has waited for an event.
    pub fn is_idle(&self) -> bool {
        self.written.is_empty() && self.opened.is_empty()
    }

    /// The waits that this batch has opened.
    pub fn opened(&self, cache: &Cache) -> Vec<SubscriptionRow> {
        let mut opened: BTreeSet<SubscriptionRow> = self.opened.iter().cloned().collect();
        for (id, written) in &self.written {
            let Some(entry) = cache.get(*id) else { continue };
            let now = entry.aggregate.listens();
            opened.extend(now.difference(written).filter_map(|channel| row(&entry.aggregate, channel)));
        }
        opened.into_iter().collect()
    }

    /// The rows to write: waits that were opened, and waits that are over.
    pub fn drain(&mut self, cache: &Cache) -> (Vec<SubscriptionRow>, Vec<SubscriptionRow>) {
        let (mut opened, mut over) = (Vec::new(), Vec::new());
        for (id, written) in self.written.drain() {
            let Some(entry) = cache.get(id) else { continue };
            let (seen, now) = (&entry.aggregate, entry.aggregate.listens());
            opened.extend(now.difference(&written).filter_map(|channel| row(seen, channel)));
            over.extend(written.difference(&now).filter_map(|channel| row(seen, channel)));
        }
        // Rows are locked in the order of their keys everywhere.
        opened.sort_unstable();
        over.sort_unstable();
        self.opened.extend(opened.iter().cloned());
        (opened, over)
    }
}

fn row(seen: &Aggregate, channel: &Name) -> Option<SubscriptionRow> {
    let topic = Topic::of_channel(channel)?;
    let key = TopicKey { namespace: seen.run.namespace.clone(), topic };
    Some(SubscriptionRow { key, run: seen.run.id })
}
