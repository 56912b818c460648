//! What time does to a question: each step once, in order, and never an answer before its time.

use kagzi_model::{
    Timestamp,
    intervention::{
        Answer, Escalation, Intervention, InterventionState, InterventionType, Message, OnTimeout, Source,
        tick,
    },
};
use proptest::prelude::*;

use super::{HOUR_MS, NOW, ask, asked};

fn escalated(remind_ms: Option<i64>) -> Intervention {
    let mut ask = ask(InterventionType::Approval);
    ask.remind_ms = remind_ms;
    let step = |hours: i64, to: &str| Escalation { after_ms: hours * HOUR_MS, to: to.into() };
    ask.escalation = vec![step(2, "lead"), step(4, "boss"), step(6, "cfo")];
    asked(ask)
}

#[test]
fn a_clock_that_leaps_over_three_escalations_does_each_once_and_then_ends() {
    let row = escalated(None);

    let leapt = tick(NOW.plus_ms(7 * HOUR_MS), &row).unwrap();
    let words: Vec<_> = leapt.words.iter().map(|word| (word.message, &*word.to, word.number)).collect();
    let (escalated, all) = (Message::Escalated, ["ada", "bob", "lead", "boss", "cfo"]);
    assert_eq!(words, [(escalated, "lead", 1), (escalated, "boss", 2), (escalated, "cfo", 3)]);
    assert_eq!(leapt.row.assignees, all.map(Into::into));
    assert_eq!(tick(NOW.plus_ms(7 * HOUR_MS), &leapt.row), None, "nothing is done twice");

    let further = tick(NOW.plus_ms(25 * HOUR_MS), &row).unwrap();
    assert_eq!(further.row.level, 3, "escalations come before the end");
    assert_eq!(further.row.state, InterventionState::Expired);
}

#[test]
fn of_many_reminders_that_were_missed_one_is_sent() {
    let row = escalated(Some(HOUR_MS));

    let late = tick(NOW.plus_ms(90 * 60_000), &row).unwrap();
    assert_eq!((late.row.reminded, late.words.len()), (1, 2), "each of the two who are asked");
    let leapt = tick(NOW.plus_ms(119 * 60_000 + 5 * HOUR_MS), &row).unwrap();
    let reminders = leapt.words.iter().filter(|word| word.message == Message::Reminder).count();
    assert_eq!((leapt.row.reminded, reminders), (6, 5), "also those who are asked since");
}

#[test]
fn the_end_of_its_time_means_what_its_type_says() {
    let end = NOW.plus_ms(24 * HOUR_MS);
    let expired = |kind, on_timeout: OnTimeout| {
        let mut ask = ask(kind);
        ask.on_timeout = on_timeout;
        let ended = tick(end, &asked(ask)).unwrap();
        let answered = ended.row.answered.unwrap();
        assert_eq!((answered.source, ended.row.state), (Source::TimeoutDefault, InterventionState::Expired));
        (answered.answer, ended.tell.unwrap().failure.map(|failure| failure.code.to_string()))
    };
    let failed = (None, Some("QUESTION_EXPIRED".to_owned()));
    let post = (Some(Answer::Option("post".into())), None);

    assert_eq!(expired(InterventionType::Approval, OnTimeout::Standard), (Some(Answer::Rejected), None));
    assert_eq!(expired(InterventionType::Decision, OnTimeout::Standard), post);
    assert_eq!(expired(InterventionType::Decision, OnTimeout::Fail), failed);
    assert_eq!(expired(InterventionType::Input, OnTimeout::Standard), failed);
    assert_eq!(expired(InterventionType::BrowserTakeover, OnTimeout::Standard), failed);
    assert_eq!(expired(InterventionType::ErrorResolution, OnTimeout::Standard), failed);
}

#[test]
fn a_queued_questions_clock_does_not_run() {
    let queued = Intervention {
        state: InterventionState::Queued,
        opened_at: None,
        expires_at: None,
        ..escalated(Some(HOUR_MS))
    };

    assert_eq!((queued.next_at(), tick(Timestamp::MAX, &queued)), (None, None));
}

proptest! {
    /// However time passes: a question is answered once, never before its time, each escalation is done once
    /// and in order, and after each tick nothing is due.
    #[test]
    fn time_answers_once_and_never_early(steps in prop::collection::vec(0..3 * HOUR_MS, 1..40)) {
        let mut row = escalated(Some(HOUR_MS));
        let (mut now, mut told, mut levels) = (NOW, 0, Vec::new());
        for ms in steps {
            now = now.plus_ms(ms);
            let due = row.next_at().is_some_and(|at| at <= now);
            let ticked = tick(now, &row);
            prop_assert_eq!(due, ticked.is_some());
            let Some(change) = ticked else { continue };
            prop_assert_eq!(change.row.version, row.version + 1);
            let escalated = change.words.iter().filter(|word| word.message == Message::Escalated);
            levels.extend(escalated.map(|word| word.number));
            told += usize::from(change.tell.is_some());
            prop_assert_eq!(change.tell.is_some(), now >= NOW.plus_ms(24 * HOUR_MS));
            prop_assert!(change.row.next_at().is_none_or(|at| at > now));
            row = change.row;
        }
        prop_assert!(told <= 1);
        prop_assert!(levels.iter().copied().eq(1..=u32::try_from(levels.len()).unwrap()));
        prop_assert_eq!(row.level as usize, levels.len());
    }
}
