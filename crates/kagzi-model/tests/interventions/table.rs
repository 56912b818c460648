//! Every state of a question against every command.

use std::fmt::Write;

use kagzi_model::{
    Name, Timestamp,
    intervention::{
        Answer, Intervention, InterventionChange, InterventionCommand, InterventionState, InterventionType,
        Quorum, decide_intervention, tick,
    },
};

use super::{HOUR_MS, NOW, YES, answer, answer_of, ask, asked};

fn scenes() -> Vec<(&'static str, Timestamp, Intervention)> {
    let approval = || ask(InterventionType::Approval);
    let pending = asked(approval());
    let queued = Intervention {
        state: InterventionState::Queued,
        opened_at: None,
        expires_at: None,
        ..pending.clone()
    };
    let apply = |row: &Intervention, command| decide_intervention(NOW, row, &[], &command).unwrap().row;
    let claimed = apply(&pending, InterventionCommand::Claim { by: "bob".into() });
    let two = asked({
        let mut two = approval();
        two.quorum = Quorum { approve: 2, reject: 1 };
        two
    });
    let voted = apply(&two, answer("ada", YES));
    let responded = apply(&pending, answer("ada", YES));
    let expired = tick(NOW.plus_ms(25 * HOUR_MS), &pending).unwrap().row;
    let cancelled = apply(&pending, InterventionCommand::Drop { why: "its run has ended" });
    vec![
        ("queued", NOW, queued),
        ("pending", NOW, pending),
        ("claimed by bob", NOW, claimed.clone()),
        ("claimed by bob six minutes ago", NOW.plus_ms(6 * 60_000), claimed),
        ("one vote of two", NOW, voted),
        ("responded", NOW.plus_ms(1_000), responded),
        ("expired", NOW.plus_ms(26 * HOUR_MS), expired),
        ("cancelled", NOW, cancelled),
    ]
}

fn commands() -> Vec<(&'static str, InterventionCommand)> {
    let by = || Name::from("ada");
    let forced = |command| match command {
        InterventionCommand::Answer(mut answering) => {
            answering.force = true;
            InterventionCommand::Answer(answering)
        }
        other => other,
    };
    let stale = |command| match command {
        InterventionCommand::Answer(mut answering) => {
            answering.if_version = Some(99);
            InterventionCommand::Answer(answering)
        }
        other => other,
    };
    vec![
        ("ada approves", answer_of("ada", "another", YES)),
        ("ada approves, sent again", answer("ada", YES)),
        ("bob approves", answer("bob", YES)),
        ("ada rejects", answer_of("ada", "no", Answer::Rejected)),
        ("bob rejects", answer("bob", Answer::Rejected)),
        ("eve approves", answer("eve", YES)),
        ("eve approves with force", forced(answer("eve", YES))),
        ("ada approves with force", forced(answer_of("ada", "another", YES))),
        ("ada approves version 99", stale(answer_of("ada", "another", YES))),
        ("ada approves other arguments", answer("ada", Answer::Approved { edited: Some(1.into()) })),
        ("ada chooses an option", answer_of("ada", "c", Answer::Option("post".into()))),
        ("ada claims", InterventionCommand::Claim { by: by() }),
        ("bob claims", InterventionCommand::Claim { by: "bob".into() }),
        ("ada releases", InterventionCommand::Release { by: by() }),
        ("bob releases", InterventionCommand::Release { by: "bob".into() }),
        ("assign eve", InterventionCommand::Assign { by: by(), assignees: vec!["eve".into()] }),
        (
            "assign the same",
            InterventionCommand::Assign { by: by(), assignees: vec!["ada".into(), "bob".into()] },
        ),
        ("ada snoozes", InterventionCommand::Snooze { by: by(), ms: HOUR_MS }),
        ("ada comments", InterventionCommand::Comment { by: by(), text: "why?".into() }),
        ("ada cancels", InterventionCommand::Cancel { by: by(), why: "a mistake".into() }),
        ("the run drops it", InterventionCommand::Drop { why: "its run has ended" }),
    ]
}

fn outcome(before: &Intervention, change: &InterventionChange) -> String {
    let InterventionChange { row, tell, words, closed, recorded } = change;
    let mut line = format!("{} {recorded:?}", row.state.name());
    if row.version == before.version {
        line.push_str(", nothing written");
    }
    if *closed {
        line.push_str(", closed");
    }
    if let Some(tell) = tell {
        match &tell.failure {
            Some(failure) => write!(line, ", tells the run {}", failure.code).unwrap(),
            None => line.push_str(", tells the run the answer"),
        }
    }
    for word in words {
        write!(line, ", {} to {}", word.message.name(), word.to).unwrap();
    }
    line
}

#[test]
fn every_state_meets_every_command() {
    let mut table = String::new();
    for (scene, now, row) in scenes() {
        writeln!(table, "## {scene}\n").unwrap();
        for (name, command) in commands() {
            let line = match decide_intervention(now, &row, &[], &command) {
                Ok(change) => outcome(&row, &change),
                Err(refused) => format!("refused: {refused}"),
            };
            writeln!(table, "{name:32} {line}").unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn whatever_the_order_of_votes_two_of_three_approve_and_one_rejects() {
    let orders = [["ada", "bob", "eve"], ["bob", "eve", "ada"], ["eve", "ada", "bob"], ["eve", "bob", "ada"]];
    for order in orders {
        for rejects in [None, Some(order[0]), Some(order[1])] {
            let mut ask = ask(InterventionType::Approval);
            ask.assignees = order.map(Name::from).to_vec();
            ask.quorum = Quorum { approve: 2, reject: 1 };
            let mut row = asked(ask);
            let mut told = Vec::new();
            for person in order {
                let vote = if rejects == Some(person) { Answer::Rejected } else { YES };
                // The same person's second word replaces the first and is no second vote.
                for id in ["first", "second"] {
                    match decide_intervention(NOW, &row, &[], &answer_of(person, id, vote.clone())) {
                        Ok(change) => {
                            told.extend(change.tell);
                            row = change.row;
                        }
                        Err(refused) => assert!(refused.to_string().contains("is closed"), "{refused}"),
                    }
                }
            }
            let answered = row.answered.clone().unwrap();
            let expected = if rejects.is_none() { YES } else { Answer::Rejected };
            assert_eq!((told.len(), answered.answer), (1, Some(expected)), "{order:?} {rejects:?}");
        }
    }
}

#[test]
fn a_member_of_a_group_that_is_asked_may_answer_and_nobody_else() {
    let mut ask = ask(InterventionType::Approval);
    ask.assignees = vec!["group:finance".into()];
    let row = asked(ask);

    let finance = [Name::from("group:finance")];
    assert!(decide_intervention(NOW, &row, &finance, &answer("eve", YES)).is_ok());
    let refused = decide_intervention(NOW, &row, &[], &answer("eve", YES)).unwrap_err();
    assert_eq!(refused.to_string(), "eve is not asked; those who are: group:finance");
}

#[test]
fn four_eyes_refuse_whoever_started_the_run_however_hard_he_tries() {
    let mut ask = ask(InterventionType::Approval);
    ask.assignees.clear();
    ask.four_eyes = true;
    let row = asked(ask);

    let own = decide_intervention(NOW, &row, &[], &answer("zoe", YES)).unwrap_err();
    assert!(own.to_string().contains("another pair of eyes"), "{own}");
}
