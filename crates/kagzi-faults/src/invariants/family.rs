//! I16: parents and children are in the database together, and what a run has started ends with it.

use std::collections::HashSet;

use super::{
    is,
    rows::{Event, Rows},
};

/// Every run that was started by another one is named by that one's history, and every run that a history
/// names is there. Where a run has continued in place, what it has forgotten is not looked for.
pub fn whole(found: &Rows) {
    for (parent, event) in starts(found) {
        let child = child_of(event);
        let knows = found.runs.get(child).and_then(|run| run.options["parent"]["run"].as_str());
        assert_eq!(knows, Some(parent), "I16: run {parent} has started {child}, which is not its child");
    }
    let named: HashSet<(&str, &str)> =
        starts(found).map(|(parent, event)| (parent, child_of(event))).collect();
    for run in found.runs.values() {
        let Some(parent) = run.options["parent"]["run"].as_str() else { continue };
        let forgets = found.runs.get(parent).is_none_or(|parent| parent.first_seq > 1);
        assert!(
            forgets || named.contains(&(parent, &run.id)),
            "I16: run {} is a child that {parent} does not know of",
            run.id
        );
    }
}

/// A run that has ended leaves no child alive that was to end with it, or it will be looked at again.
pub fn closed(found: &Rows) {
    for (parent, event) in starts(found).filter(|(_, event)| event.detail["close"] != "abandon") {
        let (parent, child) = (&found.runs[parent], &found.runs[child_of(event)]);
        let is_left = parent.finished() && parent.sweep_at.is_none() && !child.finished();
        // An operator may have let a closed child go on.
        let reopened = found.events[&child.id].iter().any(|event| event.kind == is::RUN_REOPENED);
        assert!(!is_left || reopened, "I16: run {} has ended, and its child {} lives", parent.id, child.id);
    }
}

/// By the run that has started one.
fn starts(found: &Rows) -> impl Iterator<Item = (&str, &Event)> {
    let events = found.events.iter().flat_map(|(run, events)| events.iter().map(move |e| (run.as_str(), e)));
    events.filter(|(_, event)| event.kind == is::CHILD_STARTED)
}

fn child_of(event: &Event) -> &str {
    event.detail["child"].as_str().expect("a child has an id")
}
