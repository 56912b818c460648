//! A run that continues in place: the same run with an empty record. Nothing that was told to it is lost, and
//! its history does not grow.

use kagzi_model::{
    ClosePolicy, Command, Event, EventKind, Journal, JournalState, LeaseRef, Payload, Projection, Rejection,
    Reply, RunId, RunKey, StartRun, Started, State, StepResult, Waited, act, child_channel,
};
use kagzi_store::{Assignment, EventFilter, EventRequest, OLD_ROWS_MAX, RunFilter, SweepKind};

use crate::{
    Stage, Standing,
    children::{began, child},
    signals::{TOLD_BEFORE, signal, wait},
    stage::{LEASE_MS, step},
};

const DAY_MS: i64 = 24 * 3600 * 1000;
const RETENTION: SweepKind = SweepKind::Retention { keep_ms: Some(90 * DAY_MS) };

pub(crate) fn continued(lease: &LeaseRef, input: &str) -> Command {
    let input = Payload::new(input.as_bytes().to_vec());
    lease.report(act::Continue { steps: Vec::new(), input })
}

/// A run that a standing worker was given.
async fn leased(stage: &Stage) -> (Standing, RunId, LeaseRef) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    (standing, run, lease)
}

/// Continues, and is given the run again.
pub(crate) async fn on(stage: &Stage, standing: &mut Standing, lease: &LeaseRef, input: &str) -> LeaseRef {
    stage.ok(continued(lease, input)).await;
    standing.next().await.lease()
}

/// The same after a step: a run that does nothing but continue is put off.
async fn work_on(stage: &Stage, standing: &mut Standing, lease: &LeaseRef, input: &str) -> LeaseRef {
    stage.ok(stage.record(lease, "work", b"done")).await;
    on(stage, standing, lease, input).await
}

/// The journal as a worker gets it: the living generation, and what it took along.
pub(crate) async fn journal_of(stage: &Stage, id: RunId) -> Journal {
    let first_seq = stage.run(id).await.first_seq;
    let events = stage.store.events(&stage.namespace, id, first_seq - 1, 100_000).await.unwrap();
    let mut journal = Journal::default();
    events.iter().for_each(|event| journal.absorb(event));
    let missing = journal.missing();
    for (seq, payload) in stage.store.payloads(&stage.namespace, id, &missing).await.unwrap() {
        journal.fill(seq, payload);
    }
    assert_eq!(journal.missing(), [0_u64; 0], "everything that replay needs is there");
    journal
}

/// What the waits of the living generation took, in order.
async fn taken(stage: &Stage, run: RunId) -> Vec<String> {
    let text = |state: JournalState| match state {
        JournalState::Completed { result } => String::from_utf8_lossy(&result.data).into_owned(),
        other => format!("{other:?}"),
    };
    journal_of(stage, run).await.into_entries().into_iter().map(|entry| text(entry.state)).collect()
}

async fn input(stage: &Stage, run: RunId) -> String {
    let view = stage.store.run(&stage.namespace, run).await.unwrap().unwrap();
    String::from_utf8_lossy(&view.input.unwrap().data).into_owned()
}

pub async fn a_run_that_continues_is_given_out_again_in_the_same_commit_with_its_new_input(stage: Stage) {
    let (mut standing, run, lease) = leased(&stage).await;

    let steps =
        vec![StepResult { step: step("last"), attempt: 1, result: Payload::new(&b"1"[..]), elapsed_ms: 1 }];
    stage.ok(lease.report(act::Continue { steps, input: Payload::new(&b"second"[..]) })).await;

    // Leased again by the time the worker is told: one commit.
    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    let Assignment { run: given, input: told, fresh } = standing.next().await;
    assert_eq!((given.id, given.epoch, given.generation, fresh), (run, 2, 2, true));
    assert_eq!(told.map(|input| input.data), Some("second".into()));
    assert_eq!(input(&stage, run).await, "second");
    let names = stage.event_names(run).await;
    let all = ["run_started", "run_claimed", "step_completed", "run_continued", "run_claimed"];
    assert_eq!(names, all, "the generation before is kept for people");
    let continued = &stage.events(run).await[3];
    assert_eq!(continued.seq, given.first_seq);
    assert_eq!(stage.active(standing.worker).await, 1);
}

pub async fn a_new_generation_has_an_empty_record_and_old_leases_write_nothing_into_it(stage: Stage) {
    let (mut standing, run, lease) = leased(&stage).await;
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    let next = on(&stage, &mut standing, &lease, "2").await;

    assert_eq!(journal_of(&stage, run).await.into_entries().len(), 0);
    for late in [stage.record(&lease, "charge", b"late"), stage.complete(&lease), continued(&lease, "3")] {
        let refused = stage.apply(late).await;
        assert!(matches!(refused, Err(Rejection::StaleEpoch { .. })), "{refused:?}");
    }
    stage.ok(stage.record(&next, "charge", b"again")).await;
    stage.ok(stage.complete(&next)).await;

    assert_eq!(taken(&stage, run).await, ["again"]);
    assert_eq!(stage.run(run).await.state, State::Completed);
}

pub async fn what_a_run_was_started_with_stays(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let deadline_at = stage.now().plus_ms(1_000_000);
    let start = StartRun {
        deadline_at: Some(deadline_at),
        labels: [("tenant".into(), "acme".into())].into_iter().collect(),
        ..stage.new_run("order-1")
    };
    let run = stage.start_with(start.clone()).await;
    let mut lease = standing.next().await.lease();
    for generation in 2..5 {
        lease = work_on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }

    // The very first input is what a start with the same business id is compared with.
    let again = Command::start(StartRun { id: RunId(uuid::Uuid::now_v7()), ..start });
    assert_eq!(stage.ok(again).await, Reply::Started(Started { run, existed: true }));
    let labelled = RunFilter { labels: vec![("tenant".into(), "acme".into())], ..RunFilter::default() };
    assert_eq!(stage.store.count_runs(&stage.namespace, &labelled).await.unwrap().count, 1);
    assert_eq!(stage.run(run).await.deadline_at, Some(deadline_at));
    stage.clock.advance(deadline_at - stage.now());
    stage.sweep_expired().await;
    assert!(matches!(stage.run(run).await.state, State::TimedOut { .. }));
}

pub async fn unread_signals_are_taken_generations_later_with_what_they_said(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    for id in ["tea", "milk", "cups"] {
        stage.ok(signal(&stage, run, "item", id)).await;
    }
    for generation in 2..6 {
        lease = work_on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }
    stage.sweep(RETENTION).await;

    stage.ok(wait(&lease, "first", "item", None)).await;
    assert_eq!(taken(&stage, run).await, ["tea"]);
    lease = work_on(&stage, &mut standing, &lease, "6").await;
    lease = work_on(&stage, &mut standing, &lease, "7").await;
    stage.ok(wait(&lease, "second", "item", None)).await;
    stage.ok(signal(&stage, run, "item", "plates")).await;
    stage.ok(wait(&lease, "third", "item", None)).await;
    stage.ok(wait(&lease, "fourth", "item", None)).await;

    assert_eq!(taken(&stage, run).await, ["milk", "cups", "plates"]);
    let none = stage.ok(wait(&lease, "fifth", "item", None)).await;
    assert_eq!(none, Reply::Waited(Waited::Until(None)), "nothing is taken twice");
}

pub async fn a_signal_that_was_given_back_is_taken_by_the_next_generation(stage: Stage) {
    let (mut standing, run, lease) = leased(&stage).await;
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(wait(&lease, "dropped", "item", None)).await;
    stage.ok(lease.report(act::CloseStep { step: step("dropped") })).await;
    stage.ok(wait(&lease, "left open", "other", None)).await;

    let lease = on(&stage, &mut standing, &lease, "2").await;

    stage.ok(wait(&lease, "taken", "item", None)).await;
    assert_eq!(taken(&stage, run).await, ["tea"]);
    // A wait of the code that has ended takes nothing away from the one that goes on.
    stage.ok(signal(&stage, run, "other", "cups")).await;
    let late = stage.ok(wait(&lease, "own", "other", None)).await;
    assert!(matches!(late, Reply::Waited(Waited::Taken { .. })), "{late:?}");
}

pub async fn a_late_repeat_of_a_signal_is_recognised_in_a_later_generation(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(signal(&stage, run, "item", "milk")).await;
    stage.ok(wait(&lease, "took", "item", None)).await;

    for generation in 2..5 {
        lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
        for id in ["tea", "milk"] {
            let told = stage.ok(signal(&stage, run, "item", id)).await;
            assert_eq!(told, TOLD_BEFORE, "{id} in generation {generation}");
        }
    }
}

pub async fn signals_without_pause_and_a_run_that_continues_without_pause_lose_nothing(stage: Stage) {
    const SIGNALS: usize = 120;
    let (mut standing, run, mut lease) = leased(&stage).await;
    let sending = async {
        for n in 0..SIGNALS {
            stage.ok(signal(&stage, run, "item", &n.to_string())).await;
        }
    };
    let taking = async {
        let (mut all, mut generation) = (Vec::new(), 1);
        while all.len() < SIGNALS {
            // Two at the most in each generation, whatever else lies there.
            for n in 0..2 {
                stage.ok(wait(&lease, &format!("item#{n}"), "item", Some(0))).await;
            }
            let items = taken(&stage, run).await;
            all.extend(items.into_iter().filter_map(|item| item.parse::<usize>().ok()));
            generation += 1;
            lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
        }
        all
    };

    let ((), all) = tokio::join!(sending, taking);

    assert_eq!(all, (0..SIGNALS).collect::<Vec<_>>());
}

pub async fn a_history_stays_flat_over_many_generations(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    // One that nobody ever reads is kept all the while.
    stage.ok(signal(&stage, run, "ignored", "for ever")).await;
    let mut most = 0;
    for generation in 2..60 {
        stage.ok(signal(&stage, run, "item", &generation.to_string())).await;
        stage.ok(wait(&lease, "item", "item", None)).await;
        stage.ok(stage.record(&lease, "charge", b"paid")).await;
        lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
        most = most.max(stage.events(run).await.len());
    }

    // Five events make a generation here, two of them are kept, and so are the first row and the signal.
    assert!(most <= 2 * 5 + 4, "{most} events");
    assert_eq!(stage.run(run).await.generation, 59);
    stage.ok(wait(&lease, "it", "ignored", None)).await;
    assert_eq!(taken(&stage, run).await, ["for ever"]);
    assert_eq!(stage.events(run).await[0].kind, EventKind::RunStarted, "the first event stays");
}

pub async fn a_large_generation_goes_piece_by_piece(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    let steps = OLD_ROWS_MAX * 2 + 10;
    for n in 0..steps {
        if n == steps / 2 {
            stage.ok(signal(&stage, run, "item", "tea")).await;
        }
        stage.ok(stage.record(&lease, &format!("step#{n}"), b"1")).await;
    }
    for generation in 2..4 {
        lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }

    let left = stage.events(run).await.len();
    stage.sweep(RETENTION).await;
    let swept = stage.events(run).await.len();

    assert!(swept <= 10 && swept <= left, "{left} and then {swept} events");
    stage.ok(wait(&lease, "ok", "item", None)).await;
    assert_eq!(taken(&stage, run).await, ["tea"]);
}

pub async fn a_run_that_is_cancelled_does_not_continue_and_one_that_continued_is_cancelled(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let first = stage.start("first").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.cancel(first)).await;
    let refused = stage.apply(continued(&lease, "2")).await;
    assert!(matches!(refused, Err(Rejection::Ended { .. })), "{refused:?}");
    assert_eq!(stage.run(first).await.generation, 1);

    let second = stage.start("second").await;
    let lease = standing.next().await.lease();
    let outcomes = stage.apply_all(vec![continued(&lease, "2"), stage.cancel(second)]).await;

    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(matches!(stage.run(second).await.state, State::Cancelled { .. }));
    stage.settle().await;
    assert!(standing.ready().is_none(), "nobody is given an ended run");
}

pub async fn a_lost_worker_of_a_later_generation_is_replaced_with_the_right_input(stage: Stage) {
    let (mut standing, run, lease) = leased(&stage).await;
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    let lease = on(&stage, &mut standing, &lease, "second").await;
    stage.ok(stage.record(&lease, "ship", b"sent")).await;

    stage.pass_ms(LEASE_MS.cast_unsigned() + 1);
    stage.sweep_expired().await;
    stage.pass_ms(60_000);
    stage.settle().await;
    let heir = standing.next().await;

    assert_eq!((heir.run.id, heir.run.generation, heir.fresh), (run, 2, false));
    let journal = journal_of(&stage, run).await;
    assert_eq!(journal.input().data, "second");
    assert_eq!(taken(&stage, run).await, ["sent"]);
}

pub async fn children_are_the_runs_own_in_every_generation(stage: Stage) {
    let mut standing = stage.stand_by(3).await;
    let parent = stage.start("order-1").await;
    let mut lease = standing.next().await.lease();
    let start = |path: &str, close| act::StartChild { awaited: false, close, ..child(&stage, &lease, path) };
    let (first, second) = (start("ship", ClosePolicy::Cancel), start("bill", ClosePolicy::Terminate));
    let ship = began(&stage, &lease, first).await;
    let of_ship = standing.next().await.lease();
    let bill = began(&stage, &lease, second).await;
    standing.next().await;
    lease = on(&stage, &mut standing, &lease, "2").await;

    // One ends while nobody waits for it, and is heard of in a later generation that knows its id. Of those
    // that nobody ever asks for the latest thousand go along: a run that goes on for ever collects no more.
    stage.ok(stage.complete(&of_ship)).await;
    for generation in 3..5 {
        lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }
    let (channel, timeout_ms, last_call, park) = (child_channel(ship), None, false, false);
    let ask = act::AwaitSignal { step: step("shipped"), channel, timeout_ms, last_call, park };
    let told = stage.ok(lease.report(ask)).await;
    assert!(matches!(told, Reply::Waited(Waited::Taken { failure: None, .. })), "{told:?}");
    assert_eq!(taken(&stage, parent).await, ["output"]);

    // The other one ends with its parent, as it asked for generations ago.
    stage.ok(stage.cancel(parent)).await;
    assert!(matches!(stage.run(parent).await.state, State::Cancelled { .. }));
    for _ in 0..5 {
        stage.sweep_expired().await;
    }
    assert!(matches!(stage.run(bill).await.state, State::Failed { .. }), "{:?}", stage.run(bill).await.state);
}

pub async fn a_run_that_continued_goes_with_all_that_belongs_to_it(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    stage.ok(signal(&stage, run, "item", "tea")).await;
    for generation in 2..5 {
        lease = work_on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }
    stage.ok(stage.complete(&lease)).await;
    stage.clock.advance(std::time::Duration::from_millis((91 * DAY_MS).cast_unsigned()));

    stage.sweep(RETENTION).await;

    assert!(stage.store.run(&stage.namespace, run).await.unwrap().is_none());
    assert!(stage.events(run).await.is_empty());
    let retained = RunKey::new(stage.namespace.clone(), run);
    assert!(stage.apply(retained.order(kagzi_model::Author::new("t", ""), act::Cancel)).await.is_err());
}

pub async fn a_reader_who_pages_through_a_history_that_goes_meanwhile_sees_each_event_once(stage: Stage) {
    let (mut standing, run, mut lease) = leased(&stage).await;
    for n in 0..20 {
        stage.ok(stage.record(&lease, &format!("step#{n}"), b"1")).await;
    }
    let mut seen: Vec<Event> = Vec::new();
    for generation in 2..20 {
        let request = EventRequest {
            filter: EventFilter::default(),
            beyond: seen.last().map(|event| event.seq),
            upwards: true,
            limit: 3,
            bytes_max: 1_000_000,
        };
        let piece = stage.store.history(&stage.namespace, run, &request).await.unwrap();
        seen.extend(piece.events);
        lease = work_on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }

    let numbers: Vec<u64> = seen.iter().map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let continued = |event: &&Event| matches!(event.kind, EventKind::RunContinued { .. });
    assert!(seen.iter().filter(continued).count() > 0, "the reader comes past what has gone: {numbers:?}");
}
