//! I16 and I17: parents and children are in the database together, the end of one is told to the other, and
//! what a run has started ends with it.

use std::collections::{HashMap, HashSet};

use kagzi_model::{Audit, AuditedChild, EventKind, RunId, is_child_channel};
use uuid::Uuid;

use super::{
    is,
    rows::{Event, Rows, Run},
};

/// What the living generation of each run says of its children.
type Audits<'r> = HashMap<&'r str, Audit>;

/// I16: every run that was started by another one is named by that one's history, and every run that a
/// history names is there. Where a run has continued in place, what it has forgotten is not looked for.
pub fn whole(found: &Rows, audits: &Audits<'_>) {
    for (parent, event) in starts(found) {
        let child = child_of(event);
        let knows = found.runs.get(child).and_then(|run| run.options["parent"]["run"].as_str());
        let not_started = || known_to(audits, parent, child).is_some_and(|child| child.not_started);
        assert!(
            knows == Some(parent) || not_started(),
            "I16: run {parent} has started {child}, which is not its child"
        );
        if let Some(run) = found.runs.get(child) {
            let close = &run.options["parent"]["close"];
            assert_eq!(*close, event.detail["close"], "I16: parent {parent} and child {child} disagree");
        }
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

/// I16: a run is told of the end of its child in the commit that ends it, and not before.
pub fn told(found: &Rows, audits: &Audits<'_>) {
    for child in found.runs.values() {
        let above = &child.options["parent"];
        let Some(parent) = above["run"].as_str() else { continue };
        let Some(known) = known_to(audits, parent, &child.id) else { continue };
        if child.finished() {
            let is_told = known.heard || known.dismissed || above["told"] != true;
            assert!(is_told, "I16: run {} has ended, and its parent {parent} was not told", child.id);
        } else {
            // An operator may have let it go on.
            let is_early = known.heard && !is_reopened(found, child);
            assert!(!is_early, "I16: the parent {parent} was told that run {} has ended", child.id);
        }
    }
}

/// I17: a run that has ended leaves no child alive that was to end with it, or it will be looked at again.
pub fn closed(found: &Rows) {
    for child in found.runs.values().filter(|run| !run.finished() && !is_reopened(found, run)) {
        let above = &child.options["parent"];
        let Some(parent) = above["run"].as_str().and_then(|parent| found.runs.get(parent)) else { continue };
        let is_left = parent.finished() && parent.sweep_at.is_none() && above["close"] != "abandon";
        assert!(!is_left, "I17: run {} has ended, and its child {} lives", parent.id, child.id);
    }
}

/// What is told here is the end of a child: a run that has ended is told of it too.
pub fn is_of_child(event: &Event) -> bool {
    matches!(&event.line.kind, EventKind::SignalReceived { channel, .. } if is_child_channel(channel))
}

/// What the parent's living generation knows of the child; none where it has forgotten it, or is gone itself.
fn known_to(audits: &Audits<'_>, parent: &str, child: &str) -> Option<AuditedChild> {
    let child = RunId(Uuid::try_parse(child).expect("ids are UUIDs"));
    audits.get(parent)?.children().get(&child).copied()
}

fn is_reopened(found: &Rows, run: &Run) -> bool {
    found.events[&run.id].iter().any(|event| event.kind == is::RUN_REOPENED)
}

/// By the run that has started one.
fn starts(found: &Rows) -> impl Iterator<Item = (&str, &Event)> {
    let events = found.events.iter().flat_map(|(run, events)| events.iter().map(move |e| (run.as_str(), e)));
    events.filter(|(_, event)| event.kind == is::CHILD_STARTED)
}

fn child_of(event: &Event) -> &str {
    event.detail["child"].as_str().expect("a child has an id")
}
