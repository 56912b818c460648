//! A run that continues in place: the new generation begins empty, nothing that was told to the run is lost,
//! and the generations before it are not needed any more.

use std::collections::HashSet;

use crate::play::{Epoch, Move, Play, Played, Setting, What, moves, setting};
use kagzi_model::{
    Act, Aggregate, Author, Done, Event, EventKind, LeaseRef, Mail, Name, PROMISE_CHANNEL, Payload,
    Projection, Rejection, Reply, Report, RunKey, State, act, attempts,
    intervention::is_person_channel,
    journal,
    limits::{TAKEN_KEPT, UNREAD_MAX},
};
use proptest::prelude::*;

fn unread(seen: &Aggregate) -> Vec<(Name, usize)> {
    let mut unread: Vec<_> = match seen.mail.as_deref() {
        Some(mail) => mail.unread().map(|(channel, len)| (channel.clone(), len)).collect(),
        None => Vec::new(),
    };
    unread.sort_unstable();
    unread
}

fn living(seen: &Aggregate) -> Vec<kagzi_model::RunId> {
    seen.family.iter().flat_map(|family| family.living()).collect()
}

/// What a database that has deleted everything before the living generation still has.
fn kept(play: &Play) -> impl Iterator<Item = &Event> {
    play.events.iter().filter(|event| event.seq >= play.seen.run.first_seq)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_what_its_living_generation_says(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let mut rebuilt = Aggregate::before_history(play.seen.run.clone());
            for event in kept(&play) {
                rebuilt.absorb(event.at, &event.kind);
                let bytes = event.payload.as_ref().map_or(0, |payload| payload.data.len() as u64);
                rebuilt.weigh(&event.kind, bytes);
            }
            prop_assert_eq!(&rebuilt, &play.seen);
        }
    }

    #[test]
    fn views_of_the_living_generation_are_those_of_the_whole_history(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        moves.iter().for_each(|a_move| drop(play.step(a_move)));

        let living: Vec<Event> = kept(&play).cloned().collect();
        prop_assert_eq!(attempts(&living), attempts(&play.events));
        let (mut whole, mut part) = (kagzi_model::Journal::default(), kagzi_model::Journal::default());
        play.events.iter().for_each(|event| whole.absorb(event));
        living.iter().for_each(|event| part.absorb(event));
        prop_assert_eq!(part.input(), whole.input());
        // Only what was told before this generation and taken in it is read apart.
        let before = |seq: &u64| *seq < play.seen.run.first_seq;
        prop_assert!(part.missing().iter().all(before), "{:?}", part.missing());
        prop_assert_eq!(whole.missing(), part.missing());
        prop_assert_eq!(part.entries(), whole.entries());
    }

    #[test]
    fn a_generation_begins_empty_and_takes_the_mail_along(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, before, decided: Ok(change) }) = play.step(a_move) else { continue };
            let Act::Report { report: Report::Continue(_), .. } = &command.act else { continue };
            if change.events.is_empty() {
                prop_assert_eq!(&before, &play.seen, "a repeat changes nothing");
                continue;
            }

            let run = &play.seen.run;
            prop_assert_eq!(run.generation, before.run.generation + 1);
            prop_assert_eq!(run.first_seq, play.seen.last_seq);
            let is_continued = matches!(play.events.last().unwrap().kind, EventKind::RunContinued { .. });
            prop_assert!(is_continued);
            prop_assert_eq!(&run.state, &State::Ready { since: play.now });
            prop_assert!(play.seen.steps.is_empty() && play.seen.open_len() == 0);
            prop_assert_eq!(play.seen.history_bytes, 4);
            // The ends of children too: the next generation may ask for them by their ids.
            // A promise is of the code that made it, and so is a question.
            let mut stays = unread(&before);
            let of_code = |name: &str| name.starts_with(PROMISE_CHANNEL) || is_person_channel(name);
            stays.retain(|(channel, _)| !of_code(channel));
            prop_assert_eq!(unread(&play.seen), stays);
            prop_assert_eq!(living(&play.seen), living(&before));
            prop_assert_eq!(&run.labels, &before.run.labels);
            prop_assert_eq!(run.deadline_at, before.run.deadline_at);
            prop_assert_eq!(&run.business_id, &before.run.business_id);
            prop_assert_eq!(&play.seen.handlers, &before.handlers);
        }
    }

    /// I11 and where a generation begins: numbers go on over generations, and each begins with its own line.
    #[test]
    fn generations_are_numbered_and_begin_where_the_row_says(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        moves.iter().for_each(|a_move| drop(play.step(a_move)));

        let begins = play.events.iter().filter_map(|event| match &event.kind {
            EventKind::RunContinued { generation, .. } => Some((event.seq, *generation)),
            _ => None,
        });
        let begins: Vec<(u64, u32)> = std::iter::once((1, 1)).chain(begins).collect();
        prop_assert!((1..).zip(&begins).all(|(number, (_, generation))| number == *generation));
        prop_assert_eq!(begins.last(), Some(&(play.seen.run.first_seq, play.seen.run.generation)));
    }
}

fn leased() -> Play {
    let mut play = Play::begin(Setting::default());
    play.step(&Move::Lease { lease_ms: 30_000 });
    play
}

fn lease(play: &Play) -> LeaseRef {
    let run = &play.seen.run;
    LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch }
}

fn on(play: &Play, lease: &LeaseRef) -> kagzi_model::Command {
    let _ = play;
    lease.report(act::Continue { steps: vec![], input: Payload::new(&b"next"[..]) })
}

fn signal(play: &Play, channel: &str, id: &str) -> kagzi_model::Command {
    let (channel, id, payload, failure) = (channel.into(), id.into(), Payload::new(&b"1"[..]), None);
    let signal = act::Signal { channel, id, payload, failure };
    RunKey::new(play.seen.run.namespace.clone(), play.seen.run.id).order(Author::new("t", ""), signal)
}

#[test]
fn a_repeat_is_recognised_until_somebody_is_given_the_run() {
    let mut play = leased();
    let lease = lease(&play);
    let command = on(&play, &lease);
    play.send(&command).unwrap();

    let again = play.send(&command).unwrap();
    assert_eq!((again.reply, again.events.len()), (Reply::Done(Done::BEFORE), 0));
    play.step(&Move::Lease { lease_ms: 30_000 });
    let late = play.send(&command);

    assert!(matches!(late, Err(Rejection::StaleEpoch { .. })), "{late:?}");
    assert_eq!(play.seen.run.generation, 2);
}

#[test]
fn a_run_that_never_continued_takes_no_report_for_a_repeat() {
    let mut play = Play::begin(Setting::default());
    let lease = lease(&play);

    let refused = play.send(&on(&play, &lease));

    assert!(matches!(refused, Err(Rejection::NotLeased { .. })), "{refused:?}");
}

#[test]
fn a_cancelled_run_does_not_go_on() {
    let mut play = leased();
    let command = on(&play, &lease(&play));
    play.step(&Move::Cancel);

    let refused = play.send(&command);

    assert!(matches!(refused, Err(Rejection::Ended { .. })), "{refused:?}");
}

#[test]
fn a_late_repeat_of_a_signal_is_recognised_over_generations_and_memory_is_bounded() {
    let mut play = leased();
    let told = TAKEN_KEPT + 10;
    for n in 0..told {
        play.send(&signal(&play, "item", &n.to_string())).unwrap();
        let step = kagzi_model::StepRef { path: format!("wait#{n}").into(), position: n as u32 };
        let (channel, timeout_ms, last_call, park) = ("item".into(), None, false, false);
        let wait = act::AwaitSignal { step, channel, timeout_ms, last_call, park };
        let command = lease(&play).report(wait);
        play.send(&command).unwrap();
    }
    for _ in 0..3 {
        let command = on(&play, &lease(&play));
        play.send(&command).unwrap();
        play.step(&Move::Lease { lease_ms: 30_000 });
    }

    let mail: &Mail = play.seen.mail.as_deref().unwrap();
    let known = |n: usize| mail.was_told(&"item".into(), &n.to_string().into());
    assert!((told - TAKEN_KEPT..told).all(known), "the latest are known");
    assert!(!known(0), "older ones are not");
    assert_eq!(play.send(&signal(&play, "item", &(told - 1).to_string())).unwrap().events.len(), 0);
}

#[test]
fn as_many_unread_signals_as_a_run_may_have_go_along_in_their_order_and_a_closed_channel_stays_closed() {
    let mut play = leased();
    let last_call = What::Await { step: 2, channel: 0, timeout_ms: None, last_call: true, park: false };
    play.step(&Move::Write { epoch: Epoch::Current, what: last_call });
    for n in 0..UNREAD_MAX {
        play.send(&signal(&play, if n % 2 == 0 { "even" } else { "odd" }, &n.to_string())).unwrap();
    }
    let command = on(&play, &lease(&play));
    play.send(&command).unwrap();
    play.step(&Move::Lease { lease_ms: 30_000 });

    let mut taken = Vec::new();
    for n in 0..UNREAD_MAX as u32 {
        let step = kagzi_model::StepRef { path: format!("wait#{n}").into(), position: n };
        let (channel, timeout_ms, last_call, park) =
            (["even", "odd"][n as usize % 2].into(), None, false, false);
        let wait = lease(&play).report(act::AwaitSignal { step, channel, timeout_ms, last_call, park });
        let (EventKind::WaitEnded { id, .. }, _) = &play.send(&wait).unwrap().events[0] else {
            panic!("nothing was there")
        };
        taken.push(id.parse::<usize>().unwrap());
    }

    assert_eq!(taken, (0..UNREAD_MAX).collect::<Vec<_>>());
    let refused = play.send(&signal(&play, "approved", "late"));
    assert!(matches!(refused, Err(Rejection::ChannelClosed { .. })), "{refused:?}");
    let numbers: HashSet<u64> =
        journal(&play.events).iter().filter_map(|entry| entry.sources.result).collect();
    assert_eq!(numbers.len(), UNREAD_MAX);
}
