//! Labels that a workflow sets: the last write counts, and replay repeats nothing.

use kagzi_model::{Command, Done, LeaseRef, Rejection, Reply, StepRef, act, limits::LABELS_MAX};

use crate::play::{Epoch, Move, Play, Setting, What};

fn leased() -> Play {
    let mut play = Play::begin(Setting::default());
    play.step(&Move::Lease { lease_ms: 30_000 });
    play
}

fn set(play: &Play, position: u32, name: &str, value: &str) -> Command {
    let run = &play.seen.run;
    let lease = LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch };
    let step = StepRef { path: format!("label-{position}").into(), position };
    lease.report(act::SetLabel { step, name: name.into(), value: value.into() })
}

#[test]
fn the_last_write_of_a_label_counts_and_a_repeat_of_an_earlier_one_does_not_bring_it_back() {
    let mut play = leased();
    let first = set(&play, 0, "stage", "charged");
    play.send(&first).unwrap();
    play.send(&set(&play, 1, "stage", "shipped")).unwrap();

    let again = play.send(&first).unwrap();

    assert_eq!(again.reply, Reply::Done(Done { already: true }));
    assert!(again.events.is_empty() && again.run.is_none());
    assert_eq!(play.seen.run.labels.get("stage"), Some(&"shipped".into()));
}

#[test]
fn a_label_with_the_value_it_had_is_recorded_and_leaves_the_row_alone() {
    let mut play = leased();
    play.send(&set(&play, 0, "tenant", "acme")).unwrap();

    let same = play.send(&set(&play, 1, "tenant", "acme")).unwrap();

    assert_eq!(same.events.len(), 1);
    assert!(same.run.is_none());
}

#[test]
fn the_label_that_is_one_too_many_is_refused_and_others_can_still_change() {
    let mut play = leased();
    for number in 0..LABELS_MAX as u32 {
        play.send(&set(&play, number, &format!("label-{number}"), "x")).unwrap();
    }

    let refused = play.send(&set(&play, 100, "one-more", "x"));
    let changed = play.send(&set(&play, 101, "label-0", "y"));

    assert!(matches!(refused, Err(Rejection::TooManyLabels { .. })), "{refused:?}");
    assert!(changed.is_ok());
    assert_eq!(play.seen.run.labels.len(), LABELS_MAX);
}

#[test]
fn an_ended_run_keeps_its_labels_as_they_are() {
    let mut play = leased();
    let late = set(&play, 0, "tenant", "acme");
    play.step(&Move::Write { epoch: Epoch::Current, what: What::Complete });

    let refused = play.send(&late);

    assert!(matches!(refused, Err(Rejection::Ended { .. })), "{refused:?}");
    assert!(play.seen.run.labels.is_empty());
}
