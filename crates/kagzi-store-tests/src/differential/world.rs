//! What the player may do next: moves drawn from a seed, about runs and workers that earlier moves made.

use kagzi_model::{
    Act, Author, ClosePolicy, Command, Failure, GateCommand, LeaseRef, Name, NamespaceCommand, OnFailure,
    Order, Payload, Registration, Report, RetryPolicy, RunId, RunKey, RunOptions, StartRun, StepRef,
    StepResult, Timeouts, Timestamp, Topic, WorkerId, act, schedule::ScheduleCommand,
};
use kagzi_store::{Assignment, CutOff, Deregister, Drain, Offline, SweepKind};

use super::{
    entities::TOPICS,
    moves::{Kind, Move},
};
use crate::Random;

pub(super) const TYPES: [&str; 3] = ["order", "refund", "mail"];
pub(super) const QUEUES: [&str; 2] = ["main", "slow"];
const STEPS: [&str; 5] = ["charge", "ship", "nap", "item-1/pack", "item-2/pack"];
/// The length of the leases that the moves ask for.
pub(super) const LEASE_MS: i64 = 20_000;

/// All that was made so far, so that moves can be about it.
pub struct World {
    pub(super) random: Random,
    pub namespaces: [Name; 2],
    pub runs: Vec<(Name, RunId)>,
    pub(super) workers: Vec<(WorkerId, Registration)>,
    pub(super) demands: Vec<u64>,
    /// Every lease ever given, the latest last; most are stale.
    pub(super) leases: Vec<(WorkerId, LeaseRef)>,
    pub(super) next_demand: u64,
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
        let (by, note) = (Name::from("ada"), "deploy".to_owned());
        match Kind::at(self.random.below(Kind::TOTAL)) {
            Kind::Start => Move::Apply(vec![self.start(now)]),
            Kind::Several => {
                let count = 2 + self.random.below(6);
                Move::Apply((0..count).map(|_| self.any_command(now)).collect())
            }
            Kind::Report => Move::Apply(vec![self.report(now)]),
            Kind::Order => Move::Apply(vec![self.order()]),
            Kind::Register => self.register(),
            Kind::Beat => self.beat(),
            Kind::Drain => self.about_worker(|id| Move::Drain(Drain { id })),
            Kind::CutOff => self.about_worker(|id| Move::CutOff(CutOff { id, since: now })),
            Kind::Deregister => self.about_worker(|id| Move::Deregister(Deregister { id })),
            Kind::Offline => self.about_worker(|id| Move::Offline(Offline { id })),
            Kind::StandBy => self.stand_by(),
            Kind::Withdraw => self.about_demand(|demand| Move::Withdraw { demand }),
            Kind::HangUp => self.about_demand(|demand| Move::HangUp { demand }),
            Kind::CreateSchedule => {
                let new = self.new_schedule();
                self.schedule(ScheduleCommand::Create(new))
            }
            Kind::UpdateSchedule => {
                let (new, if_version) = (self.new_schedule(), self.random.chance(30).then_some(1));
                self.schedule(ScheduleCommand::Update { new, if_version })
            }
            Kind::DeleteSchedule => self.schedule(ScheduleCommand::Delete),
            Kind::PauseSchedule => self.schedule(ScheduleCommand::Pause { note }),
            Kind::ResumeSchedule => {
                let catch_up = self.random.chance(50);
                self.schedule(ScheduleCommand::Resume { catch_up })
            }
            Kind::TriggerSchedule => {
                let trigger = self.trigger();
                self.schedule(trigger)
            }
            Kind::BackfillSchedule => {
                let backfill = self.backfill(now);
                self.schedule(backfill)
            }
            Kind::CreateNamespace => {
                let change = self.namespace_change();
                self.change_namespace(NamespaceCommand::Create(change))
            }
            Kind::UpdateNamespace => {
                let change = self.namespace_change();
                self.change_namespace(NamespaceCommand::Update(change))
            }
            Kind::DisableNamespace => self.change_namespace(NamespaceCommand::Disable { by, note }),
            Kind::EnableNamespace => self.change_namespace(NamespaceCommand::Enable),
            Kind::PauseGate => self.change_gate(GateCommand::Pause { by, note }),
            Kind::ResumeGate => self.change_gate(GateCommand::Resume),
            Kind::LimitGate => {
                let max_concurrent = self.random.chance(30).then(|| 1 + self.random.below(5) as u32);
                self.change_gate(GateCommand::Limit { max_concurrent })
            }
            Kind::Publish => self.publish(),
            Kind::CreateTrigger => self.create_trigger(),
            Kind::DeleteTrigger => self.delete_trigger(),
            Kind::Question => self.about_question(),
            Kind::Sweep => {
                let kinds = SweepKind::each(now);
                let kind = kinds[self.random.below(kinds.len())];
                Move::Sweep(match kind {
                    SweepKind::Retention { .. } if self.random.chance(30) => {
                        SweepKind::Retention { keep_ms: Some(300_000) }
                    }
                    drawn => drawn,
                })
            }
            Kind::Pass => Move::Pass { micros: self.micros() },
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

    pub(super) fn namespace(&mut self) -> Name {
        let second = self.random.chance(20);
        self.namespaces[usize::from(second)].clone()
    }

    fn any_command(&mut self, now: Timestamp) -> Command {
        match self.random.below(10) {
            0..3 => self.start(now),
            3..9 => self.report(now),
            _ => self.order(),
        }
    }

    fn start(&mut self, now: Timestamp) -> Command {
        let id = RunId(self.random.uuid());
        let namespace = self.namespace();
        // Few names, so that many are taken; some runs have none of their own.
        let business_id = match self.random.chance(30) {
            true => None,
            false => Some(Name::from(format!("order-{}", self.random.below(60)))),
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
            signals: Vec::new(),
        })
    }

    fn order(&mut self) -> Command {
        let unknown = (self.namespaces[0].clone(), RunId(self.random.uuid()));
        let (mut namespace, run) = self.random.pick(&self.runs).cloned().unwrap_or(unknown);
        if self.random.chance(5) {
            namespace = self.namespace();
        }
        let (key, by) = (RunKey::new(namespace, run), Author::new("tester", "asked to"));
        match Order::NAMES[self.random.below(Order::NAMES.len())] {
            "Cancel" => key.order(by, act::Cancel),
            "Terminate" => key.order(by, act::Terminate),
            "Retry" => key.order(by, act::Retry { from: None, request: None }),
            "Resume" => key.order(by, act::Resume { request: None }),
            "Signal" => {
                let (channel, id) = ("paid".into(), format!("s-{}", self.random.below(20)).into());
                let failure = self.random.chance(20).then(|| Failure::new("REFUSED", "no"));
                key.order(by, act::Signal { channel, id, payload: Payload::new(&b"yes"[..]), failure })
            }
            "CompletePromise" => {
                let (name, payload) = (self.promise(), Payload::new(&b"kept"[..]));
                let token_hash = self.random.chance(50).then(|| "hash".into());
                let failure = self.random.chance(20).then(|| Failure::new("BROKEN", "no"));
                key.order(by, act::CompletePromise { name, token_hash, payload, failure })
            }
            "BeatPromise" => key.order(by, act::BeatPromise { name: self.promise(), token_hash: None }),
            new => panic!("nobody draws the order {new}: say here how"),
        }
    }

    fn promise(&mut self) -> Name {
        Name::from(format!("promise-{}", self.random.below(3)))
    }

    /// A worker's write, mostly under one of the latest leases.
    fn report(&mut self, now: Timestamp) -> Command {
        let recent = if self.random.chance(80) { self.leases.len().saturating_sub(8) } else { 0 };
        let Some((_, lease)) = self.random.pick(&self.leases[recent..]).cloned() else {
            return self.start(now);
        };
        let index = self.random.below(STEPS.len());
        let step = StepRef { path: STEPS[index].into(), position: index as u32 };
        let park = self.random.chance(60);
        let attempt = 1 + self.random.below(3) as u32;
        // Most reports of a real worker are results and ends.
        let name = match self.random.chance(40) {
            true => ["RecordStep", "FailStep", "Complete"][self.random.below(3)],
            false => Report::NAMES[self.random.below(Report::NAMES.len())],
        };
        let result = |step: StepRef| StepResult {
            step,
            attempt,
            result: Payload::new(&b"\x00\xff"[..]),
            elapsed_ms: 3,
        };
        match name {
            "Progress" => lease.report(act::Progress { step, progress: Payload::new(&b"\xf0 half"[..]) }),
            "BeginStep" => {
                let timeout_ms = self.random.chance(50).then(|| self.random.below(5_000) as i64);
                let policy = RetryPolicy::default();
                lease.report(act::BeginStep { step, timeout_ms, standard_ms: None, policy })
            }
            "RecordStep" => lease.report(act::RecordStep(result(step))),
            "RecordSteps" => {
                let next = (index + 1) % STEPS.len();
                let next = StepRef { path: STEPS[next].into(), position: next as u32 };
                lease.report(act::RecordSteps { steps: vec![result(step), result(next)] })
            }
            "CloseStep" => lease.report(act::CloseStep { step }),
            "FailStep" => {
                let failure = Failure::new("BROKEN", "it broke");
                let last = self.random.chance(20);
                let failure = if last { failure.non_retryable() } else { failure };
                let policy = RetryPolicy::default();
                lease.report(act::FailStep { step, attempt, failure, policy, elapsed_ms: 4, park })
            }
            "Sleep" => {
                let duration_ms = self.random.below(10_000) as i64;
                lease.report(act::Sleep { step, duration_ms, park })
            }
            "SleepOver" => lease.report(act::SleepOver { step: step.path }),
            "Ask" => {
                let step = StepRef { path: format!("ask-{index}").into(), position: index as u32 };
                let ask = Box::new(self.question());
                lease.report(act::Ask { step, ask, park })
            }
            "AwaitSignal" => {
                let step = StepRef { path: format!("wait-{index}").into(), position: index as u32 };
                let timeout_ms = self.random.chance(70).then(|| self.random.below(20_000) as i64);
                let (name, key) = TOPICS[self.random.below(TOPICS.len())];
                let (channel, last_call) = match self.random.chance(50) {
                    true => ("paid".into(), self.random.chance(20)),
                    false => (Topic::new(name, key).channel(), false),
                };
                lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call, park })
            }
            "AwaitOrPark" => {
                let step = StepRef { path: format!("wait-{index}").into(), position: index as u32 };
                let timeout_ms = self.random.chance(70).then(|| self.random.below(20_000) as i64);
                let (waits, wake) = (vec![step.path.clone()], Default::default());
                let (channel, last_call) = ("paid".into(), false);
                let wait = act::AwaitSignal { step, channel, timeout_ms, last_call, park: false };
                lease.report(act::AwaitOrPark { wait, park: act::Park { waits, wake } })
            }
            "Complete" => {
                let steps = if park { vec![result(step)] } else { Vec::new() };
                lease.report(act::Complete { steps, output: Payload::new(&b"out\xfe"[..]) })
            }
            "Continue" => {
                let steps = if park { vec![result(step)] } else { Vec::new() };
                lease.report(act::Continue { steps, input: Payload::new(&b"next\xfe"[..]) })
            }
            "Fail" => lease.report(act::Fail { failure: Failure::new("GAVE_UP", "enough"), step: None }),
            "MakePromise" => {
                let name = self.promise();
                let step = StepRef { path: format!("~promise/{name}").into(), position: index as u32 };
                let timeout_ms = self.random.chance(50).then(|| self.random.below(20_000) as i64);
                let heartbeat_ms = self.random.chance(50).then_some(2_000);
                let (token_hash, secret) = ("hash".into(), Payload::new(&b"secret\xfd"[..]));
                lease.report(act::MakePromise { step, name, token_hash, secret, timeout_ms, heartbeat_ms })
            }
            "SetValue" => {
                let (name, number) = ("progress".into(), self.random.below(4) as u64);
                lease.report(act::SetValue { name, number, value: Payload::new(&b"half\xfc"[..]) })
            }
            "StartChild" => {
                let Command { act: Act::Start(start), .. } = self.start(now) else { unreachable!() };
                let step = StepRef { path: format!("child-{index}").into(), position: index as u32 };
                let close = ClosePolicy::ALL[self.random.below(3)];
                let (awaited, told) = (self.random.chance(60), self.random.chance(80));
                let timeout_ms = self.random.chance(50).then(|| self.random.below(20_000) as i64);
                lease.report(act::StartChild { step, start, close, awaited, told, timeout_ms, park })
            }
            "Park" => lease.report(act::Park { waits: Vec::new(), wake: Default::default() }),
            "SetLabel" => {
                let (name, value) = ("stage".into(), format!("s-{}", self.random.below(3)).into());
                let step = StepRef { path: format!("label-{index}").into(), position: index as u32 };
                lease.report(act::SetLabel { step, name, value })
            }
            "Release" => lease.report(act::Release { why: "not now".into() }),
            "Block" if self.random.chance(80) => lease.report(act::Renew { until: now.plus_ms(LEASE_MS) }),
            "Block" => lease.report(act::Block { message: "code changed".into() }),
            "Renew" => lease.report(act::Renew { until: now.plus_ms(LEASE_MS) }),
            new => panic!("nobody draws the report {new}: say here how"),
        }
    }
}
