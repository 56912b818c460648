//! Journals of whole histories and of outlines are the same.

use super::{Journal, project};
use crate::{Event, EventKind, Payload, Timestamp};

fn history() -> Vec<Event> {
    let (position, attempt, elapsed_ms) = (0, 1, 0);
    let progressed = |step: &str| EventKind::StepProgressed { step: step.into(), position, attempt };
    let completed = |step: &str| {
        let step = step.into();
        EventKind::StepCompleted { step, position, attempt, elapsed_ms }
    };
    let kinds = [
        EventKind::RunStarted,
        progressed("a"),
        progressed("b"),
        progressed("b"),
        completed("a"),
        completed("c"),
        EventKind::SignalReceived { channel: "paid".into(), id: "1".into(), failure: None, published: None },
        EventKind::WaitEnded {
            step: "w".into(),
            position,
            channel: "paid".into(),
            id: "1".into(),
            received: Some(7),
            failure: None,
            published: None,
        },
    ];
    let payload = |seq: u64| (seq != 8).then(|| Payload::new(seq.to_string().into_bytes()));
    (1..).zip(kinds).map(|(seq, kind)| Event { seq, at: Timestamp(0), kind, payload: payload(seq) }).collect()
}

/// A stream reads events with their payloads, a unary worker an outline: both must be told the same.
#[test]
fn a_journal_of_an_outline_is_the_same_once_its_payloads_are_filled_in() {
    let events = history();
    let whole: Journal = project(&events);
    let outline: Vec<Event> = events.iter().cloned().map(|e| Event { payload: None, ..e }).collect();

    let mut filled: Journal = project(&outline);
    let missing = filled.missing();
    for seq in &missing {
        let payload = events[*seq as usize - 1].payload.clone().unwrap();
        filled.fill(*seq, payload);
    }

    assert_eq!(missing, [1, 4, 5, 6, 7], "the input, of all that b said the last, the results, the signal");
    assert_eq!(filled.entries(), whole.entries());
    assert_eq!((filled.input(), filled.bytes()), (whole.input(), whole.bytes()));
    assert!(filled.missing().is_empty() && whole.missing().is_empty());
}

/// Steps in scopes, each of which is recorded as one; every tenth lies in another that is recorded later.
fn scopes(count: usize) -> Vec<Event> {
    let mut kinds = vec![EventKind::RunStarted];
    let completed =
        |path: String| EventKind::StepCompleted { step: path.into(), position: 0, attempt: 1, elapsed_ms: 0 };
    for scope in 0..count {
        let own = if scope % 10 == 0 { format!("outer#{scope}/in/") } else { format!("order#{scope}/") };
        kinds.extend((0..10).map(|n| completed(format!("{own}step#{n}"))));
        kinds.push(completed(own.clone()));
        if let Some(outer) = own.strip_suffix("in/") {
            kinds.push(completed(outer.to_owned()));
        }
    }
    let payload = |seq: u64| Some(Payload::new(seq.to_string().into_bytes()));
    (1..).zip(kinds).map(|(seq, kind)| Event { seq, at: Timestamp(0), kind, payload: payload(seq) }).collect()
}

#[test]
fn a_journal_is_told_of_scopes_and_not_of_what_lies_in_them() {
    let events = scopes(1_000);
    let whole: Journal = project(&events);
    let outline: Vec<Event> = events.iter().cloned().map(|e| Event { payload: None, ..e }).collect();
    let mut filled: Journal = project(&outline);

    let missing = filled.missing();
    assert_eq!(missing.len(), 1 + 1_000, "the input, and the result of each outermost scope");
    for seq in missing {
        filled.fill(seq, events[seq as usize - 1].payload.clone().unwrap());
    }

    let entries = whole.entries();
    assert_eq!(entries.len(), 1_000);
    assert!(entries.iter().all(|entry| entry.path.matches('/').count() == 1));
    assert_eq!(filled.entries(), entries);
    assert_eq!(whole.into_entries(), entries, "with or without copies");
    assert!(filled.bytes() < 3 * 1_000 * 300, "{} bytes", filled.bytes());
}
