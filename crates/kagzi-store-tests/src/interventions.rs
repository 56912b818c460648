//! Questions to people: asked with the wait, answered once, closed with the run, and never left without
//! anybody who could answer.

use kagzi_model::{
    Command, JournalState, LeaseRef, Name, Payload, Reply, RunId, State, Status, Waited, act,
    intervention::{
        Answer, Answering, Ask, Channel, Escalation, Intervention, InterventionCommand, InterventionKey,
        InterventionRejection, InterventionRequest, InterventionState, InterventionType, Message,
        NoticeState, Quorum, Recorded,
    },
    journal,
};
use kagzi_store::{Direction, InterventionFilter, InterventionReply, PageRequest, SweepKind};

use crate::{Stage, stage::step};

pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const YES: Answer = Answer::Approved { edited: None };

pub(crate) fn approval() -> Ask {
    let mut ask = Ask::new(InterventionType::Approval, "Refund 30?");
    ask.assignees = vec!["ada".into(), "bob".into()];
    ask
}

pub(crate) fn asking(lease: &LeaseRef, path: &str, ask: Ask, park: bool) -> Command {
    lease.report(act::Ask { step: step(path), ask: Box::new(ask), park })
}

pub(crate) fn answer(by: &str, answer: Answer) -> InterventionCommand {
    let (by, id): (Name, Name) = (by.into(), by.into());
    let (note, if_version, force) = (String::new(), None, false);
    InterventionCommand::Answer(Box::new(Answering { by, answer, id, note, if_version, force }))
}

pub(crate) async fn listed(stage: &Stage, filter: InterventionFilter) -> Vec<Intervention> {
    let page = PageRequest { from: None, direction: Direction::Next, limit: 1_000 };
    stage.store.interventions(&stage.namespace, &filter, &page).await.unwrap().rows
}

pub(crate) async fn all(stage: &Stage) -> Vec<Intervention> {
    listed(stage, InterventionFilter::default()).await
}

async fn only(stage: &Stage) -> Intervention {
    let rows = all(stage).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.into_iter().next().unwrap()
}

pub(crate) async fn change(
    stage: &Stage,
    row: &Intervention,
    command: InterventionCommand,
) -> Result<InterventionReply, InterventionRejection> {
    let request = InterventionRequest { key: row.key.clone(), run: row.run, command };
    stage.store.ask(request).await.unwrap()
}

pub(crate) async fn told(
    stage: &Stage,
    key: &InterventionKey,
) -> Vec<(Message, String, Channel, NoticeState)> {
    let notices = stage.store.notices(key).await.unwrap();
    let mut told: Vec<_> = notices
        .into_iter()
        .map(|notice| (notice.message, notice.recipient.to_string(), notice.channel, notice.state))
        .collect();
    told.sort_by_key(|(message, to, channel, _)| (*message as u8, to.clone(), *channel as u8));
    told
}

/// A run that asks and is parked, with its question.
pub(crate) async fn asked(stage: &Stage, name: &str, ask: Ask) -> (RunId, Intervention) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start(name).await;
    let lease = standing.next().await.lease();
    assert_eq!(lease.run, run);
    assert_eq!(stage.ok(asking(&lease, "refund", ask, true)).await, Reply::Waited(Waited::Until(None)));
    stage.store.withdraw(standing.demand).await.unwrap();
    let filter = InterventionFilter { run: Some(run), ..InterventionFilter::default() };
    (run, listed(stage, filter).await.into_iter().next().unwrap())
}

/// What the function is told of its question.
async fn heard(stage: &Stage, run: RunId) -> Option<String> {
    let entries = journal(&stage.events(run).await);
    let entry = entries.into_iter().find(|entry| entry.order > 0)?;
    Some(match entry.state {
        JournalState::Completed { result } => String::from_utf8_lossy(&result.data).into_owned(),
        JournalState::Failed { failure, .. } => failure.code.to_string(),
        other => format!("{other:?}"),
    })
}

async fn sweep(stage: &Stage) {
    stage.sweep(SweepKind::Questions { questions_max: 100 }).await;
}

pub async fn a_question_its_wait_and_its_notices_are_there_together_and_sent_twice_it_is_one(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    let first = stage.ok(asking(&lease, "refund", approval(), true)).await;
    let again = stage.ok(asking(&lease, "refund", approval(), true)).await;

    assert_eq!((first, again), (Reply::Waited(Waited::Until(None)), Reply::Waited(Waited::Until(None))));
    let row = only(&stage).await;
    assert_eq!((row.run, &*row.step, row.state), (run, "refund", InterventionState::Pending));
    assert_eq!(row.expires_at, Some(row.created_at.plus_ms(24 * HOUR_MS)), "a day, where nobody says");
    assert_eq!(stage.waits(run).await, ("person", None));
    assert_eq!(stage.run(run).await.state.status(), Status::Paused);
    let in_app = |to: &str| (Message::Asked, to.to_owned(), Channel::InApp, NoticeState::Sent);
    assert_eq!(told(&stage, &row.key).await, [in_app("ada"), in_app("bob")]);
    let names = stage.event_names(run).await;
    assert!(names.iter().any(|name| name == "question_asked"), "{names:?}");
}

pub async fn an_answer_wakes_its_run_in_the_same_commit_and_the_next_one_is_told_by_whom(stage: Stage) {
    let (run, row) = asked(&stage, "order-1", approval()).await;
    let mut standing = stage.stand_by(1).await;

    let reply = change(&stage, &row, answer("ada", YES)).await.unwrap();
    let late = change(&stage, &row, answer("bob", Answer::Rejected)).await.unwrap_err();
    let again = change(&stage, &row, answer("ada", YES)).await.unwrap();

    assert_eq!((reply.recorded, reply.row.state), (Recorded::Decided, InterventionState::Responded));
    assert!(late.to_string().contains("ada answered at") && late.to_string().contains("approved"), "{late}");
    assert_eq!((again.recorded, again.row.version), (Recorded::Before, reply.row.version));
    assert_eq!(standing.next().await.lease().run, run, "leased in the commit of the answer");
    let heard = heard(&stage, run).await.unwrap();
    assert!(heard.contains(r#""approved":true"#) && heard.contains(r#""by":"ada""#), "{heard}");
    assert!(stage.event_names(run).await.iter().any(|name| name == "question_answered"));
    let told = told(&stage, &row.key).await;
    assert!(told.iter().any(|(message, to, ..)| *message == Message::NoLongerNeeded && to == "bob"));
    assert!(!told.iter().any(|(message, to, ..)| *message == Message::NoLongerNeeded && to == "ada"));
}

pub async fn of_fifty_who_answer_at_once_one_counts(stage: Stage) {
    let mut ask = approval();
    ask.assignees.clear();
    let (run, row) = asked(&stage, "order-1", ask).await;

    let people: Vec<String> = (0..50).map(|n| format!("person-{n}")).collect();
    let answers = people.iter().map(|person| change(&stage, &row, answer(person, YES)));
    let outcomes = futures_util::future::join_all(answers).await;

    let winners: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1);
    let by = winners[0].row.answered.as_ref().unwrap().by.clone();
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(refused.to_string().contains(&format!("{by} answered at")), "{refused}");
    }
    assert!(heard(&stage, run).await.unwrap().contains(&format!(r#""by":"{by}""#)));
}

pub async fn an_answer_to_a_run_that_a_worker_executes_waits_for_its_question(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), false)).await;
    let row = only(&stage).await;

    change(&stage, &row, answer("ada", YES)).await.unwrap();

    let reply = stage.ok(asking(&lease, "refund", approval(), false)).await;
    let Reply::Waited(Waited::Taken { failure: None, .. }) = reply else { panic!("{reply:?}") };
    assert!(heard(&stage, run).await.unwrap().contains(r#""by":"ada""#));
    assert_eq!(only(&stage).await.state, InterventionState::Responded);
}

pub async fn votes_below_the_quorum_do_not_touch_the_run(stage: Stage) {
    let mut ask = approval();
    ask.assignees = vec!["ada".into(), "bob".into(), "eve".into()];
    ask.quorum = Quorum { approve: 2, reject: 2 };
    let (run, row) = asked(&stage, "order-1", ask).await;
    let version = stage.run(run).await.version;

    let first = change(&stage, &row, answer("ada", YES)).await.unwrap();
    let no = change(&stage, &row, answer("eve", Answer::Rejected)).await.unwrap();
    assert_eq!(first.recorded, Recorded::Vote { votes: 1, of: 2 });
    assert_eq!(no.recorded, Recorded::Vote { votes: 1, of: 2 });
    assert_eq!((stage.run(run).await.version, heard(&stage, run).await), (version, None));

    let second = change(&stage, &row, answer("bob", YES)).await.unwrap();
    assert_eq!(second.recorded, Recorded::Decided);
    assert!(heard(&stage, run).await.unwrap().contains(r#""approved":true"#));
}

pub async fn time_escalates_in_order_and_ends_a_question_once(stage: Stage) {
    let mut ask = approval();
    ask.timeout_ms = Some(8 * HOUR_MS);
    ask.remind_ms = Some(3 * HOUR_MS);
    let escalation = |hours: i64, to: &str| Escalation { after_ms: hours * HOUR_MS, to: to.into() };
    ask.escalation = vec![escalation(2, "lead"), escalation(4, "group:board")];
    let (run, row) = asked(&stage, "order-1", ask).await;

    sweep(&stage).await;
    assert_eq!(only(&stage).await.version, row.version, "nothing is due");
    stage.pass_ms(5 * HOUR_MS as u64);
    sweep(&stage).await;
    sweep(&stage).await;
    let leapt = only(&stage).await;
    assert_eq!((leapt.level, leapt.reminded, leapt.version), (2, 1, row.version + 1));
    let told = told(&stage, &row.key).await;
    let of = |wanted: Message| told.iter().filter(|(message, ..)| *message == wanted).count();
    assert_eq!((of(Message::Asked), of(Message::Escalated), of(Message::Reminder)), (2, 2, 4));
    assert_eq!(heard(&stage, run).await, None);
    let lead = change(&stage, &leapt, InterventionCommand::Claim { by: "lead".into() }).await.unwrap();

    stage.pass_ms(3 * HOUR_MS as u64);
    sweep(&stage).await;
    let ended = only(&stage).await;
    assert_eq!((ended.state, ended.version), (InterventionState::Expired, lead.row.version + 1));
    let heard_of = heard(&stage, run).await.unwrap();
    assert!(heard_of.contains(r#""approved":false"#) && heard_of.contains("timeout_default"), "{heard_of}");
    let late = change(&stage, &row, answer("ada", YES)).await.unwrap_err();
    assert!(late.to_string().contains("its time was over"), "{late}");
    sweep(&stage).await;
    assert_eq!(only(&stage).await.version, ended.version, "an ended question is left alone");
}

pub async fn an_answer_at_the_instant_of_its_end_or_the_end_counts_and_never_both(stage: Stage) {
    let mut ask = Ask::new(InterventionType::Input, "Address?");
    ask.schema = Some(serde_json::json!({}));
    ask.timeout_ms = Some(HOUR_MS);
    let (run, row) = asked(&stage, "order-1", ask).await;
    stage.pass_ms(HOUR_MS as u64);

    let data = Answer::Data(serde_json::json!("Delhi"));
    let (answered, ()) = tokio::join!(change(&stage, &row, answer("ada", data)), sweep(&stage));

    let state = only(&stage).await.state;
    let heard = heard(&stage, run).await.unwrap();
    match answered {
        Ok(_) => assert!(state == InterventionState::Responded && heard.contains("Delhi"), "{heard}"),
        Err(_) => assert_eq!((state, &*heard), (InterventionState::Expired, "QUESTION_EXPIRED")),
    }
    let ends = stage.event_names(run).await.iter().filter(|name| *name == "wait_ended").count();
    assert_eq!(ends, 1);
}

pub async fn the_end_of_a_run_closes_its_questions_and_nobody_can_answer(stage: Stage) {
    let (run, row) = asked(&stage, "order-1", approval()).await;

    stage.ok(stage.cancel(run)).await;

    let closed = only(&stage).await;
    assert_eq!(
        (closed.state, closed.cancelled.as_deref()),
        (InterventionState::Cancelled, Some("its run has ended"))
    );
    let late = change(&stage, &row, answer("ada", YES)).await.unwrap_err();
    assert!(late.to_string().contains("its run has ended"), "{late}");
    let told = told(&stage, &row.key).await;
    assert_eq!(told.iter().filter(|(message, ..)| *message == Message::NoLongerNeeded).count(), 2);
    assert_eq!(closed.next_at(), None);
}

pub async fn a_question_that_the_code_drops_is_closed_and_one_that_it_asks_again_is_new(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), false)).await;
    let nap = act::Sleep { step: step("nap"), duration_ms: 1_000, park: false };
    stage.ok(lease.report(nap)).await;

    let park = act::Park { waits: vec!["nap".into()], wake: Default::default() };
    stage.ok(lease.report(park)).await;
    let dropped = only(&stage).await;
    assert_eq!(dropped.state, InterventionState::Cancelled);
    assert_eq!(dropped.cancelled.as_deref(), Some("its run does not wait for it any more"));

    stage.pass_ms(1_000);
    stage.settle().await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), true)).await;
    let open = InterventionFilter { states: vec![InterventionState::Pending], ..Default::default() };
    let anew = listed(&stage, open).await;
    assert_eq!(anew.len(), 1);
    assert_ne!(anew[0].key.id, dropped.key.id);
    change(&stage, &anew[0], answer("ada", YES)).await.unwrap();
    let names = stage.event_names(run).await;
    assert_eq!(names.iter().filter(|name| *name == "wait_ended").count(), 1, "{names:?}");
}

pub async fn a_run_that_goes_on_after_its_end_asks_anew(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), false)).await;
    stage.ok(stage.fail(&lease)).await;
    let former = only(&stage).await;
    assert_eq!(former.state, InterventionState::Cancelled);

    let author = kagzi_model::Author::new("tester", "");
    let key = kagzi_model::RunKey::new(stage.namespace.clone(), run);
    stage.ok(key.order(author, act::Retry { from: None, request: None })).await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), true)).await;

    let states: Vec<_> = all(&stage).await.iter().map(|row| row.state).collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&InterventionState::Pending), "{states:?}");
    assert_eq!(stage.waits(run).await.0, "person");
}

pub async fn a_run_that_continues_in_place_drops_what_it_asked(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(asking(&lease, "refund", approval(), false)).await;

    let next = act::Continue { steps: Vec::new(), input: Payload::new(&b"{}"[..]) };
    stage.ok(lease.report(next)).await;

    let closed = only(&stage).await;
    assert_eq!(closed.cancelled.as_deref(), Some("its run has begun anew"));
}

pub async fn a_question_that_somebody_takes_back_fails_its_wait(stage: Stage) {
    let (run, row) = asked(&stage, "order-1", approval()).await;

    let cancel = InterventionCommand::Cancel { by: "ada".into(), why: "a mistake".into() };
    change(&stage, &row, cancel.clone()).await.unwrap();
    let again = change(&stage, &row, cancel).await.unwrap();

    assert_eq!(again.recorded, Recorded::Before);
    assert_eq!(heard(&stage, run).await.as_deref(), Some("QUESTION_CANCELLED"));
    assert!(matches!(stage.run(run).await.state, State::Ready { .. }));
}
