//! What a run owes to workers that are lost or give it back: limits of their own, apart from the steps' retry
//! policy.

use kagzi_model::{
    Aggregate, Author, Begin, Command, Done, EventKind, Finality, LeaseRef, Payload, Reason, Reclaimed,
    Reply, RetryPolicy, RunId, RunKey, RunOptions, StartRun, State, StepEnd, StepRef, StepResult, StepState,
    Timestamp, Wait, WorkerId, act, decide,
    limits::{LOSSES_STANDARD, PROGRESS_EVENTS_MAX, RELEASES_MAX},
};
use uuid::Uuid;

const RUN: RunId = RunId(Uuid::from_u128(1));
const WORKER: WorkerId = WorkerId(Uuid::from_u128(7));

/// One run, whose time we move.
struct Story {
    now: Timestamp,
    seen: Aggregate,
}

impl Story {
    fn begin(retry: RetryPolicy) -> Story {
        let start = Command::start(StartRun {
            namespace: "shop".into(),
            id: RUN,
            business_id: None,
            workflow_type: "order".into(),
            task_queue: "main".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions { retry, ..RunOptions::default() },
            labels: Default::default(),
            signals: Vec::new(),
        });
        let now = Timestamp::from_millis(1_000_000);
        let run = decide(now, None, None, &start).unwrap().run.unwrap();
        Story { now, seen: Aggregate::new(run, 0) }
    }

    fn apply(&mut self, command: &Command) -> Reply {
        let change = decide(self.now, Some(&self.seen), None, command).unwrap();
        self.seen.apply(self.now, &change);
        change.reply
    }

    /// Waits until the run is due, and says for how long; a worker then takes it.
    fn claim(&mut self) -> i64 {
        let due_at = self.seen.run.due_at().expect("it is due some time");
        let waited_ms = due_at.remaining_ms(self.now);
        self.now = self.now.max(due_at);
        let until = self.now.plus_ms(30_000);
        self.apply(&RunKey::new("shop", RUN).duty(act::Claim { worker: WORKER, until }));
        waited_ms
    }

    fn lease(&self) -> LeaseRef {
        LeaseRef { namespace: "shop".into(), run: RUN, epoch: self.seen.run.epoch }
    }

    fn release(&mut self) {
        self.apply(&self.lease().report(act::Release { why: "the task of the run died".into() }));
    }

    fn lose(&mut self, cut_off: bool) -> Reply {
        let loss = act::Loss { cut_off, losses_max: LOSSES_STANDARD };
        let epoch = self.seen.run.epoch;
        self.apply(&RunKey::new("shop", RUN).duty(act::Orphan { epoch, loss }))
    }

    fn begin_step(&mut self, path: &str) -> u32 {
        let (lease, policy) = (self.lease(), RetryPolicy::default());
        match self.apply(&lease.report(act::BeginStep {
            step: step(path),
            timeout_ms: None,
            standard_ms: None,
            policy,
        })) {
            Reply::Begin(Begin::Execute { attempt, .. }) => attempt,
            other => panic!("not to be executed: {other:?}"),
        }
    }

    fn record(&mut self, path: &str) {
        let (lease, result) = (self.lease(), Payload::new(&b"1"[..]));
        self.apply(&lease.report(act::RecordStep(StepResult {
            step: step(path),
            attempt: 1,
            result,
            elapsed_ms: 1,
        })));
    }
}

fn step(path: &str) -> StepRef {
    StepRef { path: path.into(), position: 0 }
}

fn attempts_max(maximum: i32) -> RetryPolicy {
    RetryPolicy { maximum_attempts: Some(maximum), ..RetryPolicy::default() }
}

#[test]
fn a_run_that_is_given_back_without_progress_waits_longer_each_time_and_is_quarantined_with_a_reason() {
    let mut story = Story::begin(RetryPolicy::default());
    story.claim();

    let mut waits_ms = Vec::new();
    while !matches!(story.seen.run.state, State::Paused { .. }) {
        story.release();
        if story.seen.run.due_at().is_some() {
            waits_ms.push(story.claim());
        }
    }

    assert_eq!(waits_ms, [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
    assert_eq!(story.seen.run.dispatch_count, RELEASES_MAX);
    let State::Paused { by, why, .. } = &story.seen.run.state else { unreachable!("it is paused") };
    assert_eq!(&**by, "quarantine");
    assert!(why.contains("10 times in a row") && why.contains("the task of the run died"), "{why}");
    assert_eq!((story.seen.run.attempts, story.seen.run.crashes), (0, 0), "no attempt is counted");
}

#[test]
fn progress_and_a_persons_word_end_the_row_of_releases() {
    let mut story = Story::begin(RetryPolicy::default());
    for _ in 0..3 {
        story.claim();
        story.release();
    }
    story.claim();
    story.record("charge");

    story.release();

    assert_eq!(story.claim(), 0);
    while !matches!(story.seen.run.state, State::Paused { .. }) {
        story.release();
        if story.seen.run.due_at().is_some() {
            story.claim();
        }
    }
    story.apply(&RunKey::new("shop", RUN).order(Author::new("tester", ""), act::Resume { request: None }));
    story.claim();
    story.release();
    assert_eq!(story.claim(), 0);
}

#[test]
fn a_run_whose_steps_may_be_tried_once_goes_on_when_its_worker_dies_before_any_began() {
    let mut story = Story::begin(attempts_max(1));
    story.claim();

    story.lose(false);

    let parked = story.seen.run.state.parked().unwrap();
    assert_eq!((parked.wait.reason(), &parked.step, parked.attempt), (Reason::Retry, &None, 1));
    story.claim();
    story.lose(false);
    story.claim();
    story.lose(false);
    let State::Paused { by, why, .. } = &story.seen.run.state else { panic!("{:?}", story.seen.run.state) };
    assert_eq!(&**by, "quarantine");
    assert!(why.contains("lost 3 times in a row"), "{why}");
}

#[test]
fn an_execution_of_a_step_that_began_and_died_counts_and_has_its_number() {
    let mut story = Story::begin(attempts_max(2));
    story.claim();
    let first = story.begin_step("charge");

    story.lose(false);
    story.claim();
    let second = story.begin_step("charge");
    story.lose(false);

    assert_eq!((first, second), (1, 2));
    let charge = &story.seen.steps["charge"];
    let StepState::Done(StepEnd::Failed { failure, finality }) = &charge.state else {
        panic!("{:?}", charge.state)
    };
    assert_eq!((&*failure.code, *finality, charge.attempts), ("WORKER_LOST", Finality::Exhausted, 2));
    let parked = story.seen.run.state.parked().unwrap();
    assert_eq!((parked.wait.reason(), &parked.step), (Reason::Retry, &None), "the function must hear of it");
}

#[test]
fn the_first_takeover_after_a_broken_connection_does_not_wait_and_the_next_does() {
    let mut story = Story::begin(RetryPolicy::default());
    story.claim();
    story.begin_step("charge");

    let reply = story.lose(true);

    assert_eq!(reply, Reply::Reclaimed(Reclaimed::TakenBack { at: Some(story.now) }));
    let charge = &story.seen.steps["charge"];
    assert!(
        matches!(charge.state, StepState::Waiting(Wait::Retry { at, .. }) if at == story.now),
        "{:?}",
        charge.state
    );
    assert_eq!((story.seen.run.crashes, story.claim()), (1, 0));
    story.lose(true);
    assert!(story.claim() > 0);
}

#[test]
fn a_run_that_would_not_be_executed_again_stays_with_a_worker_that_was_only_cut_off() {
    let mut out_of_losses = Story::begin(RetryPolicy::default());
    for _ in 0..LOSSES_STANDARD - 1 {
        out_of_losses.claim();
        out_of_losses.lose(true);
    }
    out_of_losses.claim();
    let mut out_of_attempts = Story::begin(attempts_max(1));
    out_of_attempts.claim();
    out_of_attempts.begin_step("charge");

    for story in [&mut out_of_losses, &mut out_of_attempts] {
        let crashes = story.seen.run.crashes;
        assert_eq!(story.lose(true), Reply::Reclaimed(Reclaimed::Nothing));
        assert!(story.seen.run.lease().is_some());
        assert_eq!(story.seen.run.crashes, crashes);

        story.lose(false);
        assert!(story.seen.run.lease().is_none(), "silence for long enough ends it all the same");
    }
}

#[test]
fn a_lost_worker_uses_up_nothing_of_what_all_steps_share() {
    let none = RetryPolicy { run_retries_max: Some(0), ..RetryPolicy::default() };
    let mut story = Story::begin(none);
    story.claim();
    story.begin_step("a");
    story.begin_step("b");

    let loss = act::Loss { cut_off: false, losses_max: LOSSES_STANDARD };
    let epoch = story.seen.run.epoch;
    let orphan = RunKey::new("shop", RUN).duty(act::Orphan { epoch, loss });
    let change = decide(story.now, Some(&story.seen), None, &orphan).unwrap();

    let retried = change.events.iter().map(|(kind, _)| match kind {
        EventKind::StepFailed { step, retry_at, .. } => Some((step.to_string(), retry_at.is_some())),
        _ => None,
    });
    assert_eq!(retried.flatten().collect::<Vec<_>>(), [("a".into(), true), ("b".into(), true)]);
    story.lose(false);
    assert_eq!((story.seen.retries, story.seen.retry_ms), (0, 0));
}

#[test]
fn words_of_progress_end_before_a_history_is_too_long_to_be_loaded() {
    let mut story = Story::begin(RetryPolicy::default());
    story.claim();
    let progress = |story: &Story| {
        story.lease().report(act::Progress { step: step("copy"), progress: Payload::new(&b"half"[..]) })
    };
    story.seen.last_seq = PROGRESS_EVENTS_MAX - 1;

    let last = story.apply(&progress(&story));
    let late = decide(story.now, Some(&story.seen), None, &progress(&story)).unwrap();

    assert_eq!(last, Reply::Done(Done { already: false }));
    assert_eq!((late.events.len(), late.reply), (0, Reply::Done(Done { already: true })));
}

#[test]
fn words_of_progress_leave_room_for_the_results_of_the_run() {
    let mut story = Story::begin(RetryPolicy::default());
    story.claim();
    let mib = 1024 * 1024;
    let said = Payload::new(vec![7_u8; mib]);
    for _ in 0..500 {
        story.now = story.now.plus_ms(3_600_000);
        let progress = act::Progress { step: step("copy"), progress: said.clone() };
        story.apply(&story.lease().report(progress));
    }
    let result = StepResult {
        step: step("copy"),
        attempt: 1,
        result: Payload::new(vec![7_u8; 2 * mib]),
        elapsed_ms: 0,
    };

    let recorded = decide(story.now, Some(&story.seen), None, &story.lease().report(act::RecordStep(result)));

    assert!(recorded.is_ok(), "{recorded:?} after {} bytes", story.seen.history_bytes);
}

/// Limits that hold for the whole run hold for steps that time out in the same moment, too: each is judged
/// with the ones before it counted.
#[test]
fn steps_that_time_out_together_share_the_limits_of_their_run() {
    let retry = RetryPolicy { run_retries_max: Some(2), ..RetryPolicy::default() };
    let mut story = Story::begin(retry.clone());
    story.claim();
    for (position, path) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let step = StepRef { path: path.into(), position: position as u32 };
        let begin =
            act::BeginStep { step, timeout_ms: Some(1_000), standard_ms: None, policy: retry.clone() };
        let lease = story.lease();
        story.apply(&lease.report(begin));
    }

    story.now = story.now.plus_ms(2_000);
    story.apply(&RunKey::new("shop", RUN).duty(act::Expire { losses_max: LOSSES_STANDARD }));

    let waiting = |step: &&kagzi_model::Step| matches!(step.state, StepState::Waiting(Wait::Retry { .. }));
    let failed = |step: &&kagzi_model::Step| matches!(step.state, StepState::Done(StepEnd::Failed { .. }));
    let steps = &story.seen.steps;
    assert_eq!(
        (steps.values().filter(waiting).count(), steps.values().filter(failed).count()),
        (2, 2),
        "two retries are allowed to all of them together"
    );
}
