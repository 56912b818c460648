//! The inbox: who is asked how much, who is told what on which way, and what is listed.

use std::sync::Arc;

use kagzi_model::{
    Name, Timestamp,
    intervention::{
        Ask, Channel, Contact, ContactRule, Intervention, InterventionCommand, InterventionRejection,
        InterventionState, InterventionType, Message, Notice, NoticeState,
    },
};
use kagzi_store::{
    ChangeNoun, Direction, InterventionFilter, PageRequest, SettleNotice, SweepKind, TakeNotices,
};

use crate::{
    Stage,
    interventions::{HOUR_MS, YES, all, answer, approval, asked, asking, change, listed, told},
};

async fn contact(stage: &Stage, name: &str, contact: Contact) {
    let rule = ContactRule::Put { namespace: stage.namespace.clone(), name: name.into(), contact };
    stage.store.ask(ChangeNoun(Arc::new(rule))).await.unwrap().unwrap();
}

pub async fn the_eleventh_question_waits_until_one_of_the_ten_is_closed(stage: Stage) {
    let mut standing = stage.stand_by(20).await;
    let mut ask = approval();
    ask.assignees = vec!["ada".into()];
    let mut rows = Vec::new();
    for n in 0..13 {
        let run = stage.start(&format!("order-{n}")).await;
        let lease = standing.next().await.lease();
        stage.ok(asking(&lease, "refund", ask.clone(), true)).await;
        let filter = InterventionFilter { run: Some(run), ..InterventionFilter::default() };
        rows.push(listed(&stage, filter).await.remove(0));
        stage.pass_ms(1_000);
    }
    let states =
        |rows: &[Intervention]| rows.iter().filter(|row| row.state == InterventionState::Queued).count();
    assert_eq!(states(&rows), 3, "ten are pending");
    assert_eq!((rows[10].expires_at, rows[10].next_at()), (None, None), "its clock does not run");
    assert_eq!(told(&stage, &rows[10].key).await, [], "nobody is told of it");

    change(&stage, &rows[0], answer("ada", YES)).await.unwrap();

    let after = all(&stage).await;
    let of = |row: &Intervention| after.iter().find(|other| other.key == row.key).unwrap().clone();
    assert_eq!(of(&rows[10]).state, InterventionState::Pending, "the oldest one opens");
    assert_eq!(of(&rows[11]).state, InterventionState::Queued);
    assert_eq!(of(&rows[10]).expires_at, Some(stage.now().plus_ms(24 * HOUR_MS)));
    assert_eq!(told(&stage, &rows[10].key).await.len(), 1);
    // One that waits can be answered all the same, and makes no room.
    change(&stage, &rows[12], answer("ada", YES)).await.unwrap();
    assert_eq!(states(&all(&stage).await), 1);
}

pub async fn a_claim_keeps_others_away_for_five_minutes_unless_they_force_it(stage: Stage) {
    let (_, row) = asked(&stage, "order-1", approval()).await;
    let claim = |by: &str| InterventionCommand::Claim { by: by.into() };

    change(&stage, &row, claim("bob")).await.unwrap();
    let refused = change(&stage, &row, answer("ada", YES)).await.unwrap_err();
    assert!(matches!(&refused, InterventionRejection::Claimed { by, .. } if **by == *"bob"), "{refused}");
    change(&stage, &row, InterventionCommand::Release { by: "bob".into() }).await.unwrap();
    change(&stage, &row, claim("ada")).await.unwrap();
    stage.pass_ms(5 * 60_000);
    change(&stage, &row, answer("bob", YES)).await.unwrap();
}

pub async fn people_are_told_on_the_ways_that_they_chose_and_groups_by_their_members(stage: Stage) {
    let on_call = |email: &str, webhook: &str, channels: Vec<Channel>| Contact {
        email: email.into(),
        webhook: webhook.into(),
        groups: vec!["finance".into()],
        channels,
        ..Contact::default()
    };
    contact(&stage, "ada", on_call("ada@example.com", "https://example.com/ada", vec![])).await;
    contact(&stage, "eve", on_call("eve@example.com", "https://x.example", vec![Channel::Email])).await;
    let mut ask = approval();
    ask.assignees = vec!["group:finance".into()];
    let (_, row) = asked(&stage, "order-1", ask).await;

    let way = |to: &str, channel| {
        let state = if channel == Channel::InApp { NoticeState::Sent } else { NoticeState::Pending };
        (Message::Asked, to.to_owned(), channel, state)
    };
    let expected = [
        way("ada", Channel::InApp),
        way("ada", Channel::Email),
        way("ada", Channel::Webhook),
        way("eve", Channel::InApp),
        way("eve", Channel::Email),
    ];
    assert_eq!(told(&stage, &row.key).await, expected);
    assert!(change(&stage, &row, answer("bob", YES)).await.is_err(), "bob is in no group");
    change(&stage, &row, answer("eve", YES)).await.unwrap();
    let after = told(&stage, &row.key).await;
    let left = after.iter().filter(|(message, _, _, state)| {
        *message != Message::NoLongerNeeded && matches!(state, NoticeState::Pending | NoticeState::Retrying)
    });
    assert_eq!(left.count(), 0, "I20: nothing more is sent about a closed question but that it is closed");
}

pub async fn a_notice_is_taken_once_until_its_time_and_settled_for_good(stage: Stage) {
    contact(&stage, "ada", Contact { email: "ada@example.com".into(), ..Contact::default() }).await;
    let mut ask = approval();
    ask.assignees = vec!["ada".into()];
    let (_, row) = asked(&stage, "order-1", ask).await;
    let take = |until: Timestamp| stage.store.ask(TakeNotices { channel: Channel::Email, until, limit: 10 });
    let others = stage.store.ask(TakeNotices { channel: Channel::Webhook, until: Timestamp::MAX, limit: 10 });
    assert_eq!(others.await.unwrap(), [], "each channel is taken for itself");

    let due = stage.store.notice_due_since().await.unwrap();
    assert_eq!(due, Some(row.created_at), "it waits for somebody who sends it");
    let until = stage.now().plus_ms(60_000);
    let mut taken = take(until).await.unwrap();
    assert_eq!(stage.store.notice_due_since().await.unwrap(), Some(until), "nothing is overdue");
    assert_eq!(taken.len(), 1);
    assert_eq!(take(until).await.unwrap(), [], "somebody sends it");
    stage.pass_ms(60_000);
    let again = take(stage.now().plus_ms(60_000)).await.unwrap();
    assert_eq!(again.len(), 1, "whoever took it was lost");
    assert_eq!(again[0].id, taken[0].id, "the same on every try");
    let mut failed: Notice = taken.remove(0);
    (failed.state, failed.attempts) = (NoticeState::Retrying, 1);
    (failed.next_at, failed.last_error) = (Some(stage.now().plus_ms(5_000)), Some("550 no such box".into()));
    stage.store.ask(SettleNotice(failed.clone())).await.unwrap();
    stage.pass_ms(5_000);
    let mut third = take(stage.now().plus_ms(60_000)).await.unwrap().remove(0);
    assert_eq!((third.attempts, third.last_error.as_deref()), (1, Some("550 no such box")));
    (third.state, third.next_at, third.sent_at) = (NoticeState::Sent, None, Some(stage.now()));
    stage.store.ask(SettleNotice(third.clone())).await.unwrap();
    stage.store.ask(SettleNotice(failed)).await.unwrap();

    assert_eq!(stage.store.notice_due_since().await.unwrap(), None);
    let sent = stage.store.notices(&row.key).await.unwrap();
    assert!(sent.iter().all(|notice| notice.state == NoticeState::Sent), "{sent:?}");
    stage.pass_ms(HOUR_MS as u64);
    assert_eq!(take(stage.now()).await.unwrap(), []);
}

pub async fn questions_are_listed_by_urgency_both_ways_and_by_whom_they_ask(stage: Stage) {
    let mut standing = stage.stand_by(20).await;
    let people = [vec!["ada"], vec!["group:ops"], vec!["ada", "group:ops"], vec![], vec!["eve"]];
    for (n, named) in people.iter().enumerate() {
        stage.start(&format!("order-{n}")).await;
        let lease = standing.next().await.lease();
        let mut ask = approval();
        ask.assignees = named.iter().map(|name| Name::from(*name)).collect();
        // The later it is asked, the sooner it is due.
        ask.timeout_ms = Some((10 - n as i64) * HOUR_MS);
        ask.title = format!("question {n}");
        if n == 4 {
            ask = Ask { assignees: ask.assignees, ..Ask::new(InterventionType::Input, "question 4") };
            ask.schema = Some(serde_json::json!({}));
            ask.timeout_ms = Some(HOUR_MS);
        }
        stage.ok(asking(&lease, "refund", ask, true)).await;
    }
    let titles = |rows: &[Intervention]| -> Vec<String> {
        rows.iter().map(|row| row.ask.title.replace("question ", "")).collect()
    };
    let pending = InterventionFilter { states: vec![InterventionState::Pending], ..Default::default() };
    assert_eq!(titles(&listed(&stage, pending.clone()).await), ["4", "3", "2", "1", "0"]);

    let mine = |names: &[&str]| InterventionFilter {
        assignees: names.iter().map(|name| Name::from(*name)).collect(),
        ..pending.clone()
    };
    assert_eq!(titles(&listed(&stage, mine(&["ada", "group:ops", "*"])).await), ["3", "2", "1", "0"]);
    assert_eq!(titles(&listed(&stage, mine(&["ada"])).await), ["2", "0"]);
    assert_eq!(titles(&listed(&stage, mine(&["*"])).await), ["3"]);
    let input = InterventionFilter { kind: Some(InterventionType::Input), ..pending.clone() };
    assert_eq!(titles(&listed(&stage, input).await), ["4"]);
    let soon = stage.now().plus_ms(7 * HOUR_MS);
    let urgent = InterventionFilter { due_before: Some(soon), ..pending.clone() };
    assert_eq!(titles(&listed(&stage, urgent).await), ["4", "3"]);

    let place = |row: &Intervention| kagzi_store::Cursor { at: row.due_at(), id: row.key.id };
    let filter = mine(&["ada", "group:ops", "*"]);
    let page = |from, direction| PageRequest { from, direction, limit: 2 };
    let read = |request| {
        let (stage, filter) = (&stage, &filter);
        async move { stage.store.interventions(&stage.namespace, filter, &request).await.unwrap() }
    };
    let first = read(page(None, Direction::Next)).await;
    assert_eq!(
        (titles(&first.rows), first.has_next, first.has_prev),
        (vec!["3".to_owned(), "2".to_owned()], true, false)
    );
    let second = read(page(first.rows.last().map(place), Direction::Next)).await;
    assert_eq!(
        (titles(&second.rows), second.has_next, second.has_prev),
        (vec!["1".to_owned(), "0".to_owned()], false, true)
    );
    let back = read(page(second.rows.first().map(place), Direction::Prev)).await;
    assert_eq!(titles(&back.rows), titles(&first.rows));
}

pub async fn a_question_goes_with_its_run_when_that_is_past_its_retention(stage: Stage) {
    let (run, row) = asked(&stage, "order-1", approval()).await;
    stage.ok(stage.cancel(run)).await;
    stage.pass_ms(HOUR_MS as u64);

    stage.sweep(SweepKind::Retention { keep_ms: Some(HOUR_MS / 2) }).await;

    assert_eq!(stage.store.intervention(&row.key).await.unwrap(), None);
    assert_eq!(stage.store.notices(&row.key).await.unwrap(), []);
    assert_eq!(all(&stage).await, []);
}
