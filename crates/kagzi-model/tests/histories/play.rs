//! Random histories of one run: what workers, people and the clock may do to it, sensible or not.

use kagzi_model::{
    Aggregate, Author, Change, ClosePolicy, Command, Event, EventKind, Failure, LeaseRef, Name, Payload,
    Rejection, RetryPolicy, RunId, RunKey, RunOptions, StartRun, Step, StepRef, StepResult, StepState,
    Timestamp, Wait, Wake, WorkerId, act, decide,
    intervention::{Ask, InterventionType, Tell},
    limits::LOSSES_STANDARD,
};
use proptest::prelude::*;
use uuid::Uuid;

const RUN: RunId = RunId(Uuid::from_u128(1));
pub const CHANNELS: [&str; 3] = ["approved", "orders", "~promise/payment"];
const PROMISE: &str = "payment";
pub const PATHS: [&str; 4] = ["charge", "ship", "nap", "item-1/charge"];

/// One move. Everything that depends on the state of the run is filled in when it is played.
#[derive(Debug, Clone)]
pub enum Move {
    /// The clock moves.
    Pass {
        ms: i64,
    },
    /// A worker claims.
    Lease {
        lease_ms: i64,
    },
    /// A worker writes, under a lease it has, had, or made up.
    Write {
        epoch: Epoch,
        what: What,
    },
    Orphan {
        epoch: Epoch,
        cut_off: bool,
    },
    Expire,
    Cancel,
    Terminate,
    Resume,
    Reopen,
    /// Somebody completes a promise, or says that it has failed.
    Promise {
        fails: bool,
    },
    /// Whoever works on it lives.
    Beat,
    /// One of its children ends, perhaps for the second time.
    ChildEnds {
        which: usize,
        fails: bool,
    },
    /// A person answers the question of this step, if it has one.
    Answer {
        step: usize,
        fails: bool,
    },
    /// Somebody tells the run something, perhaps for the second time.
    Signal {
        channel: usize,
        id: u8,
        fails: bool,
    },
}

/// Which epoch a write names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Epoch {
    Current,
    Older,
    Newer,
}

/// A worker's write.
#[derive(Debug, Clone)]
pub enum What {
    BeginStep { step: usize, moved: bool, timeout_ms: Option<i64> },
    Progress { step: usize },
    SetLabel { step: usize, value: u8 },
    MakePromise { step: usize, timeout_ms: Option<i64>, heartbeat_ms: Option<i64> },
    SetValue { number: u64 },
    RecordStep { step: usize, moved: bool, attempt: Attempt },
    FailStep { step: usize, attempt: Attempt, last: bool, park: bool, delay_ms: i64 },
    Sleep { step: usize, ms: i64, park: bool },
    Await { step: usize, channel: usize, timeout_ms: Option<i64>, last_call: bool, park: bool },
    AwaitOrPark { step: usize, channel: usize, timeout_ms: Option<i64>, waits: Vec<usize>, wake: u64 },
    Ask { step: usize, park: bool },
    Child { step: usize, close: usize, awaited: bool, told: bool, timeout_ms: Option<i64>, park: bool },
    SleepOver { step: usize },
    Complete,
    Continue { last: Option<usize> },
    Fail,
    Park { waits: Vec<usize>, wake: u64 },
    Close { step: usize },
    Release,
    Block,
    Renew { lease_ms: i64 },
}

/// Which attempt a worker believes it made.
#[derive(Debug, Clone, Copy)]
pub enum Attempt {
    /// The one after those on record.
    Next,
    /// Any number.
    Odd(u32),
}

/// What the run was started with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setting {
    pub deadline_ms: Option<i64>,
    pub run_retry: bool,
}

pub fn setting() -> impl Strategy<Value = Setting> {
    (prop::option::of(0..400_000i64), any::<bool>())
        .prop_map(|(deadline_ms, run_retry)| Setting { deadline_ms, run_retry })
}

pub fn moves() -> impl Strategy<Value = Vec<Move>> {
    let epoch = prop_oneof![8 => Just(Epoch::Current), 1 => Just(Epoch::Older), 1 => Just(Epoch::Newer)];
    let a_move = prop_oneof![
        3 => prop_oneof![0..3_000i64, 0..200_000i64].prop_map(|ms| Move::Pass { ms }),
        5 => (1..60_000i64).prop_map(|lease_ms| Move::Lease { lease_ms }),
        14 => (epoch.clone(), what()).prop_map(|(epoch, what)| Move::Write { epoch, what }),
        2 => (epoch, any::<bool>()).prop_map(|(epoch, cut_off)| Move::Orphan { epoch, cut_off }),
        2 => Just(Move::Expire),
        1 => any::<bool>().prop_map(|fails| Move::Promise { fails }),
        2 => Just(Move::Beat),
        1 => Just(Move::Resume),
        4 => (0..CHANNELS.len(), 0..6_u8, prop::bool::weighted(0.2))
            .prop_map(|(channel, id, fails)| Move::Signal { channel, id, fails }),
        3 => (0..PATHS.len(), prop::bool::weighted(0.3))
            .prop_map(|(step, fails)| Move::Answer { step, fails }),
        3 => (0..8_usize, prop::bool::weighted(0.3))
            .prop_map(|(which, fails)| Move::ChildEnds { which, fails }),
        1 => prop_oneof![Just(Move::Reopen), Just(Move::Reopen), Just(Move::Terminate)],
    ];
    // Cancel comes last or never: in the middle it would cut most histories short.
    let end = prop_oneof![Just(vec![]), Just(vec![Move::Cancel])];
    let rest = prop::collection::vec(what(), 0..8);
    (prop::collection::vec(a_move, 1..60), end, rest).prop_map(|(mut moves, end, rest)| {
        let ended = !end.is_empty();
        moves.extend(end);
        if ended {
            moves.extend(rest.into_iter().map(|what| Move::Write { epoch: Epoch::Current, what }));
            moves.extend([Move::Resume, Move::Expire, Move::Lease { lease_ms: 1_000 }]);
        }
        moves
    })
}

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.1)
}

fn what() -> impl Strategy<Value = What> {
    let step = || 0..PATHS.len();
    let moved = prop::bool::weighted(0.1);
    let odd = || prop_oneof![Just(0), Just(u32::MAX), any::<u32>()].prop_map(Attempt::Odd);
    let attempt = move || prop_oneof![9 => Just(Attempt::Next), 1 => odd()];
    let delay_ms = prop_oneof![Just(0i64), 1..5_000i64];
    prop_oneof![
        8 => (step(), moved, prop::option::of(0..8_000i64))
            .prop_map(|(step, moved, timeout_ms)| What::BeginStep { step, moved, timeout_ms }),
        2 => step().prop_map(|step| What::Progress { step }),
        4 => (step(), prop::option::of(0..9_000i64), prop::option::of(1..5_000i64)).prop_map(
            |(step, timeout_ms, heartbeat_ms)| What::MakePromise { step, timeout_ms, heartbeat_ms }
        ),
        2 => (1..5u64).prop_map(|number| What::SetValue { number }),
        4 => (step(), 0..3u8).prop_map(|(step, value)| What::SetLabel { step, value }),
        8 => (step(), moved, attempt())
            .prop_map(|(step, moved, attempt)| What::RecordStep { step, moved, attempt }),
        10 => (step(), attempt(), prop::bool::weighted(0.2), any::<bool>(), delay_ms).prop_map(
            |(step, attempt, last, park, delay_ms)| What::FailStep { step, attempt, last, park, delay_ms }
        ),
        10 => (step(), prop_oneof![Just(0i64), -5..10_000i64], any::<bool>())
            .prop_map(|(step, ms, park)| What::Sleep { step, ms, park }),
        10 => step().prop_map(|step| What::SleepOver { step }),
        12 => (step(), 0..CHANNELS.len(), prop::option::of(0..9_000i64), rarely(), any::<bool>())
            .prop_map(|(step, channel, timeout_ms, last_call, park)| What::Await {
                step, channel, timeout_ms, last_call, park,
            }),
        3 => (step(), 0..CHANNELS.len(), prop::option::of(0..9_000i64),
              prop::collection::vec(step(), 0..3), 0..3_u64)
            .prop_map(|(step, channel, timeout_ms, waits, wake)| What::AwaitOrPark {
                step, channel, timeout_ms, waits, wake,
            }),
        6 => (step(), any::<bool>()).prop_map(|(step, park)| What::Ask { step, park }),
        6 => (step(), 0..3_usize, any::<bool>(), any::<bool>(), prop::option::of(0..9_000i64), any::<bool>())
            .prop_map(|(step, close, awaited, told, timeout_ms, park)| What::Child {
                step, close, awaited, told, timeout_ms, park,
            }),
        1 => Just(What::Complete),
        2 => prop::option::of(step()).prop_map(|last| What::Continue { last }),
        1 => Just(What::Fail),
        6 => (prop::collection::vec(step(), 0..3), 0..3_u64)
            .prop_map(|(waits, wake)| What::Park { waits, wake }),
        3 => step().prop_map(|step| What::Close { step }),
        4 => Just(What::Release),
        1 => Just(What::Block),
        3 => (1..60_000i64).prop_map(|lease_ms| What::Renew { lease_ms }),
    ]
}

/// A run that is being played, and all that was written about it.
pub struct Play {
    pub now: Timestamp,
    pub seen: Aggregate,
    pub events: Vec<Event>,
}

/// What a move came to.
pub struct Played {
    pub command: Command,
    pub before: Aggregate,
    pub decided: Result<Change, Rejection>,
}

impl Play {
    /// Starts the run.
    pub fn begin(Setting { deadline_ms, run_retry }: Setting) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let start = StartRun {
            namespace: "default".into(),
            id: RUN,
            business_id: Some("order-1".into()),
            workflow_type: "order".into(),
            task_queue: "main".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: deadline_ms.map(|ms| now.plus_ms(ms)),
            options: RunOptions { run_retry: run_retry.then(RetryPolicy::default), ..RunOptions::default() },
            labels: Default::default(),
            signals: Vec::new(),
        };
        let change = decide(now, None, None, &Command::start(start)).expect("nothing is in the way");
        let seen = Aggregate::new(change.run.clone().expect("a start makes a run"), 0);
        let mut play = Play { now, seen, events: Vec::new() };
        play.take(&change);
        play
    }

    /// Plays one move; the clock's moves decide nothing.
    pub fn step(&mut self, a_move: &Move) -> Option<Played> {
        if let Move::Pass { ms } = a_move {
            self.now = self.now.plus_ms(*ms);
            return None;
        }
        let command = self.command(a_move);
        let before = self.seen.clone();
        let decided = self.send(&command);
        Some(Played { command, before, decided })
    }

    /// Decides a command and takes the change over.
    pub fn send(&mut self, command: &Command) -> Result<Change, Rejection> {
        let decided = decide(self.now, Some(&self.seen), None, command);
        if let Ok(change) = &decided {
            self.take(change);
        }
        decided
    }

    fn take(&mut self, change: &Change) {
        let next = self.seen.last_seq + 1;
        for (seq, (kind, payload)) in (next..).zip(change.events.clone()) {
            self.events.push(Event { seq, at: self.now, kind, payload });
        }
        self.seen.apply(self.now, change);
    }

    fn command(&self, a_move: &Move) -> Command {
        let (namespace, run) = (self.seen.run.namespace.clone(), RUN);
        let epoch = |epoch: &Epoch| match epoch {
            Epoch::Current => self.seen.run.epoch,
            Epoch::Older => self.seen.run.epoch.saturating_sub(1),
            Epoch::Newer => self.seen.run.epoch + 1,
        };
        match a_move {
            Move::Pass { .. } => unreachable!("time is not a command"),
            Move::Lease { lease_ms } => {
                let worker = WorkerId(Uuid::from_u128(u128::from(self.seen.run.epoch) + 100));
                RunKey::new(namespace, run).duty(act::Claim { worker, until: self.now.plus_ms(*lease_ms) })
            }
            Move::Write { epoch: named, what } => {
                self.write(LeaseRef { namespace, run, epoch: epoch(named) }, what)
            }
            Move::Orphan { epoch: named, cut_off } => {
                let loss = act::Loss { cut_off: *cut_off, losses_max: LOSSES_STANDARD };
                RunKey::new(namespace, run).duty(act::Orphan { epoch: epoch(named), loss })
            }
            Move::Expire => RunKey::new(namespace, run).duty(act::Expire { losses_max: LOSSES_STANDARD }),
            Move::Cancel => RunKey::new(namespace, run).order(Author::new("tester", "enough"), act::Cancel),
            Move::Terminate => {
                RunKey::new(namespace, run).order(Author::new("tester", "enough"), act::Terminate)
            }
            Move::Resume => {
                RunKey::new(namespace, run).order(Author::new("tester", ""), act::Resume { request: None })
            }
            Move::Promise { fails } => {
                let complete = act::CompletePromise {
                    name: PROMISE.into(),
                    token_hash: None,
                    payload: Payload::new(&b"paid"[..]),
                    failure: fails.then(|| Failure::new("DECLINED", "no")),
                };
                RunKey::new(namespace, run).order(Author::new("tester", ""), complete)
            }
            Move::Beat => {
                let beat = act::BeatPromise { name: PROMISE.into(), token_hash: None };
                RunKey::new(namespace, run).order(Author::new("tester", ""), beat)
            }
            Move::ChildEnds { which, fails } => {
                let started = self.events.iter().filter_map(|event| match &event.kind {
                    EventKind::ChildStarted { child, told: true, .. } => Some(*child),
                    _ => None,
                });
                let children: Vec<RunId> = started.collect();
                let child = children.get(*which % children.len().max(1)).copied().unwrap_or(RUN);
                let (id, output) = ("end:7".into(), Some(Payload::new(&b"shipped"[..])));
                let failure = fails.then(|| Failure::new("LOST", "at sea"));
                RunKey::new(namespace, run).duty(act::ChildEnded { child, id, output, failure })
            }
            Move::Answer { step, fails } => {
                let step = Name::from(PATHS[*step]);
                let asked = self.seen.mail.as_deref().and_then(|mail| mail.questions().get(&step).copied());
                let (question, by) = (asked.unwrap_or_else(Uuid::nil), Some("ada".into()));
                let failure = fails.then(|| Failure::new("QUESTION_EXPIRED", "too late"));
                let tell = Tell { payload: Payload::new(&b"{}"[..]), failure };
                let (source, answer) = ("user".into(), "approved".into());
                let told = act::TellAnswer { step, question, tell, by, source, answer };
                RunKey::new(namespace, run).duty(told)
            }
            Move::Signal { channel, id, fails } => {
                let signal = act::Signal {
                    channel: CHANNELS[*channel].into(),
                    id: id.to_string().into(),
                    payload: Payload::new(&b"told"[..]),
                    failure: fails.then(|| Failure::new("DECLINED", "no")),
                };
                RunKey::new(namespace, run).order(Author::new("tester", ""), signal)
            }
            Move::Reopen => RunKey::new(namespace, run)
                .order(Author::new("tester", ""), act::Retry { from: None, request: None }),
        }
    }

    fn write(&self, lease: LeaseRef, what: &What) -> Command {
        let step = |index: usize, moved: bool| StepRef {
            path: PATHS[index].into(),
            position: index as u32 + if moved { 10 } else { 0 },
        };
        let attempt = |index: usize, attempt: &Attempt| match attempt {
            Attempt::Next => {
                self.seen.steps.get(PATHS[index]).map_or(0, |step| step.attempts).saturating_add(1)
            }
            Attempt::Odd(number) => *number,
        };
        match what {
            What::BeginStep { step: index, moved, timeout_ms } => lease.report(act::BeginStep {
                step: step(*index, *moved),
                timeout_ms: *timeout_ms,
                standard_ms: None,
                policy: RetryPolicy::default(),
            }),
            What::Progress { step: index } => lease
                .report(act::Progress { step: step(*index, false), progress: Payload::new(&b"half"[..]) }),
            What::RecordStep { step: index, moved, attempt: number } => {
                lease.report(act::RecordStep(StepResult {
                    step: step(*index, *moved),
                    attempt: attempt(*index, number),
                    result: Payload::new(&b"result"[..]),
                    elapsed_ms: 1,
                }))
            }
            What::FailStep { step: index, attempt: number, last, park, delay_ms } => {
                let failure = Failure::new("BROKEN", "it broke");
                let failure = if *last { failure.non_retryable() } else { failure };
                let policy = RetryPolicy { initial_interval_ms: Some(*delay_ms), ..Default::default() };
                let (step, attempt) = (step(*index, false), attempt(*index, number));
                lease.report(act::FailStep { step, attempt, failure, policy, elapsed_ms: 2, park: *park })
            }
            What::Sleep { step: index, ms, park } => {
                lease.report(act::Sleep { step: step(*index, false), duration_ms: *ms, park: *park })
            }
            What::Await { step: index, channel, timeout_ms, last_call, park } => {
                lease.report(act::AwaitSignal {
                    step: step(*index, false),
                    channel: CHANNELS[*channel].into(),
                    timeout_ms: *timeout_ms,
                    last_call: *last_call,
                    park: *park,
                })
            }
            What::AwaitOrPark { step: index, channel, timeout_ms, waits, wake } => {
                let wait = act::AwaitSignal {
                    step: step(*index, false),
                    channel: CHANNELS[*channel].into(),
                    timeout_ms: *timeout_ms,
                    last_call: false,
                    park: false,
                };
                // The wait itself is always among them.
                let named = waits.iter().chain([index]).map(|index| Name::from(PATHS[*index])).collect();
                let park = act::Park { waits: named, wake: Wake::from_number(*wake).expect("one of three") };
                lease.report(act::AwaitOrPark { wait, park })
            }
            What::Ask { step: index, park } => {
                let ask = Box::new(Ask::new(InterventionType::Approval, "Refund 30?"));
                lease.report(act::Ask { step: step(*index, false), ask, park: *park })
            }
            What::Child { step: index, close, awaited, told, timeout_ms, park } => {
                let start = StartRun {
                    id: RunId(Uuid::from_u128(1_000 + self.events.len() as u128)),
                    ..child_of_anybody()
                };
                lease.report(act::StartChild {
                    step: step(*index, false),
                    start: Box::new(start),
                    close: ClosePolicy::ALL[*close],
                    awaited: *awaited,
                    told: *told,
                    timeout_ms: *timeout_ms,
                    park: *park,
                })
            }
            What::SleepOver { step } => {
                let asleep = |step: &&Step| matches!(step.state, StepState::Waiting(Wait::Timer { .. }));
                let sleeping = self.seen.steps.values().filter(asleep).map(|step| step.path.clone()).min();
                lease.report(act::SleepOver { step: sleeping.unwrap_or_else(|| Name::from(PATHS[*step])) })
            }
            What::MakePromise { step: index, timeout_ms, heartbeat_ms } => lease.report(act::MakePromise {
                step: step(*index, false),
                name: PROMISE.into(),
                token_hash: "hash".into(),
                secret: Payload::new(&b"secret"[..]),
                timeout_ms: *timeout_ms,
                heartbeat_ms: *heartbeat_ms,
            }),
            What::SetValue { number } => lease.report(act::SetValue {
                name: "progress".into(),
                number: *number,
                value: Payload::new(&b"half"[..]),
            }),
            What::SetLabel { step: index, value } => lease.report(act::SetLabel {
                step: step(*index, false),
                name: "stage".into(),
                value: value.to_string().into(),
            }),
            What::Complete => {
                lease.report(act::Complete { steps: Vec::new(), output: Payload::new(&b"output"[..]) })
            }
            What::Continue { last } => {
                let result = |index: usize| StepResult {
                    step: step(index, false),
                    attempt: attempt(index, &Attempt::Next),
                    result: Payload::new(&b"last"[..]),
                    elapsed_ms: 1,
                };
                let (steps, input) = (last.map(result).into_iter().collect(), Payload::new(&b"next"[..]));
                lease.report(act::Continue { steps, input })
            }
            What::Fail => lease.report(act::Fail { failure: Failure::new("GAVE_UP", "enough"), step: None }),
            What::Park { waits, wake } => {
                let named = waits.iter().map(|index| Name::from(PATHS[*index])).collect();
                let wake = Wake::from_number(*wake).expect("one of three");
                lease.report(act::Park { waits: named, wake })
            }
            What::Close { step: index } => {
                let runs = |index: &usize| match self.seen.steps.get(PATHS[*index]) {
                    Some(step) => matches!(step.state, StepState::Running { .. }) && !step.closed,
                    None => false,
                };
                let running = (0..PATHS.len()).find(runs).unwrap_or(*index);
                lease.report(act::CloseStep { step: step(running, false) })
            }
            What::Release => lease.report(act::Release { why: "leaving".into() }),
            What::Block => lease.report(act::Block { message: "code changed".into() }),
            What::Renew { lease_ms } => lease.report(act::Renew { until: self.now.plus_ms(*lease_ms) }),
        }
    }
}

fn child_of_anybody() -> StartRun {
    StartRun {
        namespace: "default".into(),
        id: RUN,
        business_id: None,
        workflow_type: "ship".into(),
        task_queue: "main".into(),
        input: Payload::new(&b"{}"[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    }
}

/// Whether the event is about the end of the run.
pub fn ends_run(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
    )
}
