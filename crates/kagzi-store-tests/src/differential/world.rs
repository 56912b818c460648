//! What the player may do next: moves drawn from a seed, about runs and workers that earlier moves made.

use kagzi_model::{
    Author, Command, Failure, LeaseRef, Name, OnFailure, Payload, Registration, RetryPolicy, RunId, RunKey,
    RunOptions, StartRun, StepRef, StepResult, Timeouts, Timestamp, WorkerId, act,
};
use kagzi_store::{Assignment, Beat, Deregister, Drain, Register, SweepKind};

use crate::Random;

const TYPES: [&str; 3] = ["order", "refund", "mail"];
const QUEUES: [&str; 2] = ["main", "slow"];
const STEPS: [&str; 5] = ["charge", "ship", "nap", "item-1/pack", "item-2/pack"];
const LEASE_MS: i64 = 20_000;

/// One operation on a store.
#[derive(Debug, Clone)]
pub enum Move {
    Apply(Vec<Command>),
    Register(Register),
    Beat(Beat),
    Drain(Drain),
    Deregister(Deregister),
    StandBy {
        demand: u64,
        worker: WorkerId,
        types: Vec<Name>,
        once: bool,
    },
    Withdraw {
        demand: u64,
    },
    /// The worker's connection breaks: nobody listens any more.
    HangUp {
        demand: u64,
    },
    Sweep(SweepKind),
    Pass {
        micros: u64,
    },
}

/// The length of the leases that the moves ask for.
pub fn lease_ms() -> i64 {
    LEASE_MS
}

/// All that was made so far, so that moves can be about it.
pub struct World {
    random: Random,
    pub namespaces: [Name; 2],
    pub runs: Vec<(Name, RunId)>,
    workers: Vec<(WorkerId, Registration)>,
    demands: Vec<u64>,
    /// Every lease ever given, the latest last; most are stale.
    leases: Vec<(WorkerId, LeaseRef)>,
    next_demand: u64,
}

impl World {
    pub fn new(seed: u64, namespace: &str) -> Self {
        World {
            random: Random::new(seed),
            namespaces: [namespace.into(), format!("{namespace}-2").into()],
            runs: Vec::new(),
            workers: Vec::new(),
            demands: Vec::new(),
            leases: Vec::new(),
            next_demand: 1,
        }
    }

    /// Notes that a run was given out.
    pub fn given(&mut self, assignment: &Assignment) {
        let worker = assignment.run.lease().expect("an assigned run is leased").worker;
        self.leases.push((worker, assignment.lease()));
    }

    /// Draws the next move.
    pub fn draw(&mut self, now: Timestamp) -> Move {
        match self.random.below(100) {
            0..15 => Move::Apply(vec![self.start(now)]),
            15..20 => self.register(),
            20..29 => self.stand_by(),
            29..31 => self.end_demand(),
            31..64 => Move::Apply(vec![self.write(now)]),
            64..72 => {
                let count = 2 + self.random.below(6);
                Move::Apply((0..count).map(|_| self.any_command(now)).collect())
            }
            72..76 => Move::Apply(vec![self.about_a_run()]),
            76..83 => self.worker_command(),
            83..87 => Move::Sweep(SweepKind::Expired { now, leap: None }),
            87..89 => Move::Sweep(SweepKind::StaleWorkers { before: now.plus_ms(-45_000) }),
            _ => Move::Pass { micros: self.micros() },
        }
    }

    fn micros(&mut self) -> u64 {
        match self.random.below(5) {
            0 => 1,
            1 => self.random.below(1_000_000) as u64,
            2 | 3 => self.random.below(5_000_000) as u64,
            _ => self.random.below(60_000_000) as u64,
        }
    }

    fn namespace(&mut self) -> Name {
        let second = self.random.chance(20);
        self.namespaces[usize::from(second)].clone()
    }

    fn any_command(&mut self, now: Timestamp) -> Command {
        match self.random.below(10) {
            0..3 => self.start(now),
            3..9 => self.write(now),
            _ => self.about_a_run(),
        }
    }

    fn start(&mut self, now: Timestamp) -> Command {
        let id = RunId(self.random.uuid());
        let namespace = self.namespace();
        // Few names, so that many are taken; some runs have none of their own.
        let business_id = match self.random.chance(30) {
            true => Name::from(id.to_string()),
            false => Name::from(format!("order-{}", self.random.below(60))),
        };
        let named_once = self.random.chance(80);
        let workflow_type = if named_once { 0 } else { self.random.below(TYPES.len()) };
        let retry = RetryPolicy {
            initial_interval_ms: self.random.chance(50).then(|| self.random.below(3_000) as i64),
            maximum_attempts: self.random.chance(20).then_some(2),
            ..RetryPolicy::default()
        };
        let timeouts =
            Timeouts { heartbeat_ms: self.random.chance(10).then_some(7_000), ..Timeouts::default() };
        let run_retry = self.random.chance(20).then(RetryPolicy::default);
        let on_failure =
            self.random.chance(20).then(|| OnFailure { workflow_type: TYPES[2].into(), task_queue: None });
        let deadline_at = self.random.chance(25).then(|| now.plus_ms(self.random.below(200_000) as i64));
        let labels = match self.random.chance(30) {
            true => {
                [("tenant".into(), Name::from(format!("t-{}", self.random.below(3))))].into_iter().collect()
            }
            false => Default::default(),
        };
        self.runs.push((namespace.clone(), id));
        Command::start(StartRun {
            namespace,
            id,
            business_id,
            workflow_type: TYPES[workflow_type].into(),
            task_queue: QUEUES[usize::from(self.random.chance(15))].into(),
            input: Payload::new(if self.random.chance(90) { &b"\xff in"[..] } else { &b"else"[..] }),
            deadline_at,
            options: RunOptions { retry, timeouts, run_retry, on_failure, ..RunOptions::default() },
            labels,
        })
    }

    fn register(&mut self) -> Move {
        // Sometimes the same worker again, as after a lost answer.
        if let Some((id, registration)) = self.workers.last().cloned()
            && self.random.chance(10)
        {
            return Move::Register(Register { id, registration });
        }
        let id = WorkerId(self.random.uuid());
        let mut workflow_types = vec![Name::from(TYPES[0])];
        if self.random.chance(60) {
            workflow_types.extend(TYPES[1..].iter().map(|name| Name::from(*name)));
        }
        let registration = Registration {
            namespace: self.namespace(),
            task_queue: QUEUES[usize::from(self.random.chance(15))].into(),
            workflow_types,
            hostname: "host".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent: 1 + self.random.below(4) as u32,
            labels: Default::default(),
        };
        self.workers.push((id, registration.clone()));
        Move::Register(Register { id, registration })
    }

    fn stand_by(&mut self) -> Move {
        let Some((worker, registration)) = self.recent_worker() else { return self.register() };
        let mut types = registration.workflow_types;
        types.truncate(1 + self.random.below(3));
        let demand = self.next_demand;
        self.next_demand += 1;
        self.demands.push(demand);
        Move::StandBy { demand, worker, types, once: self.random.chance(50) }
    }

    fn end_demand(&mut self) -> Move {
        let Some(demand) = self.random.pick(&self.demands).copied() else { return self.register() };
        if self.random.chance(50) { Move::Withdraw { demand } } else { Move::HangUp { demand } }
    }

    fn recent_worker(&mut self) -> Option<(WorkerId, Registration)> {
        let recent = self.workers.len().saturating_sub(6);
        self.random.pick(&self.workers[recent..]).cloned()
    }

    fn worker_command(&mut self) -> Move {
        let Some((id, _)) = self.recent_worker() else { return self.register() };
        match self.random.below(12) {
            0 => Move::Drain(Drain { id }),
            1 => Move::Deregister(Deregister { id }),
            _ => {
                let recent = self.leases.len().saturating_sub(30);
                let runs = self.leases[recent..]
                    .iter()
                    .filter(|(worker, _)| *worker == id)
                    .filter(|_| self.random.chance(80))
                    .map(|(_, lease)| lease.clone())
                    .collect();
                let unlisted_after_ms = self.random.chance(50).then_some(5_000);
                Move::Beat(Beat {
                    id,
                    of: None,
                    runs,
                    lease_ms: LEASE_MS,
                    unlisted_after_ms,
                    reconnected: false,
                    listed_before: Vec::new(),
                })
            }
        }
    }

    fn about_a_run(&mut self) -> Command {
        let unknown = (self.namespaces[0].clone(), RunId(self.random.uuid()));
        let (mut namespace, run) = self.random.pick(&self.runs).cloned().unwrap_or(unknown);
        if self.random.chance(5) {
            namespace = self.namespace();
        }
        match self.random.below(10) {
            0..2 => RunKey::new(namespace, run).order(Author::new("tester", "asked to"), act::Cancel),
            2 => RunKey::new(namespace, run).order(Author::new("tester", "given up"), act::Terminate),
            3..6 => RunKey::new(namespace, run)
                .order(Author::new("tester", ""), act::Retry { from: None, request: None }),
            _ => RunKey::new(namespace, run).order(Author::new("tester", ""), act::Resume { request: None }),
        }
    }

    /// A worker's write, mostly under one of the latest leases.
    fn write(&mut self, now: Timestamp) -> Command {
        let recent = if self.random.chance(80) { self.leases.len().saturating_sub(8) } else { 0 };
        let Some((_, lease)) = self.random.pick(&self.leases[recent..]).cloned() else {
            return self.start(now);
        };
        let index = self.random.below(STEPS.len());
        let step = StepRef { path: STEPS[index].into(), position: index as u32 };
        let park = self.random.chance(60);
        match self.random.below(20) {
            0 => lease.report(act::Progress { step, progress: Payload::new(&b"\xf0 half"[..]) }),
            1 => {
                let timeout_ms = self.random.chance(50).then(|| self.random.below(5_000) as i64);
                lease.report(act::BeginStep {
                    step,
                    timeout_ms,
                    standard_ms: None,
                    policy: RetryPolicy::default(),
                })
            }
            2..7 => lease.report(act::RecordStep(StepResult {
                step,
                attempt: self.random.below(3) as u32,
                result: Payload::new(&b"\x00\xff"[..]),
                elapsed_ms: 3,
            })),
            7..10 => {
                let failure = Failure::new("BROKEN", "it broke");
                let last = self.random.chance(20);
                let failure = if last { failure.non_retryable() } else { failure };
                let attempt = 1 + self.random.below(3) as u32;
                let policy = RetryPolicy::default();
                lease.report(act::FailStep { step, attempt, failure, policy, elapsed_ms: 4, park })
            }
            10..12 => {
                let duration_ms = self.random.below(10_000) as i64;
                lease.report(act::Sleep { step, duration_ms, park })
            }
            12 => lease.report(act::SleepOver { step: step.path }),
            13..16 => {
                let result = Payload::new(&b"last"[..]);
                let last = StepResult { step, attempt: 1, result, elapsed_ms: 2 };
                let steps = if park { vec![last] } else { Vec::new() };
                lease.report(act::Complete { steps, output: Payload::new(&b"out\xfe"[..]) })
            }
            16 => lease.report(act::Fail { failure: Failure::new("GAVE_UP", "enough"), step: None }),
            17 if park => lease.report(act::Park { waits: Vec::new() }),
            17 => {
                let (name, value) = ("stage".into(), format!("s-{}", self.random.below(3)).into());
                let step = StepRef { path: format!("label-{index}").into(), position: index as u32 };
                lease.report(act::SetLabel { step, name, value })
            }
            18 => lease.report(act::Release { why: "not now".into() }),
            _ => match self.random.chance(20) {
                true => lease.report(act::Block { message: "code changed".into() }),
                false => lease.report(act::Renew { until: now.plus_ms(LEASE_MS) }),
            },
        }
    }
}
