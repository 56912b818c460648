//! Moves about workers, schedules, namespaces and gates.

use kagzi_model::{
    CreateTrigger, DeleteTrigger, GateCommand, GateKey, Name, NamespaceChange, NamespaceCommand, Payload,
    PublishEvent, Registration, RunId, RunOptions, Timestamp, Topic, TopicKey, Trigger, WorkerId,
    schedule::{Backfill, NewSchedule, Overlap, Plan, ScheduleCommand, ScheduleKey, ScheduleRequest, Timing},
};
use kagzi_store::{Beat, ChangeGate, ChangeNamespace, Register};

use super::{
    moves::Move,
    world::{LEASE_MS, QUEUES, TYPES, World},
};

/// Few, so that waits, events and triggers meet.
pub(super) const TOPICS: [(&str, &str); 3] =
    [("paid", "1"), ("paid", ""), ("kagzi/workflow.failed", "order")];
const TRIGGERS: [&str; 2] = ["ship", "watch"];

/// Few, so that many requests meet one that exists.
const SCHEDULES: [&str; 3] = ["hourly", "nightly", "never"];

impl World {
    pub(super) fn register(&mut self) -> Move {
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

    pub(super) fn publish(&mut self) -> Move {
        // What the engine publishes nobody else does.
        let (name, key) = TOPICS[self.random.below(2)];
        let key = TopicKey { namespace: self.namespace(), topic: Topic::new(name, key) };
        let id = Name::from(format!("e{}", self.random.below(30)));
        let keep_ms = self.random.below(60_000) as i64;
        Move::Publish(PublishEvent { key, id, payload: Payload::new(&b"paid\xfe"[..]), keep_ms })
    }

    pub(super) fn create_trigger(&mut self) -> Move {
        let (topic, key) = TOPICS[self.random.below(TOPICS.len())];
        let trigger = Trigger {
            topic: topic.into(),
            key: self.random.chance(50).then(|| key.into()),
            workflow_type: TYPES[self.random.below(TYPES.len())].into(),
            task_queue: QUEUES[0].into(),
        };
        let id = TRIGGERS[self.random.below(TRIGGERS.len())].into();
        Move::CreateTrigger(CreateTrigger { namespace: self.namespace(), id, trigger })
    }

    pub(super) fn delete_trigger(&mut self) -> Move {
        let id = TRIGGERS[self.random.below(TRIGGERS.len())].into();
        Move::DeleteTrigger(DeleteTrigger { namespace: self.namespace(), id })
    }

    pub(super) fn stand_by(&mut self) -> Move {
        let Some((worker, registration)) = self.recent_worker() else { return self.register() };
        let mut types = registration.workflow_types;
        types.truncate(1 + self.random.below(3));
        let demand = self.next_demand;
        self.next_demand += 1;
        self.demands.push(demand);
        Move::StandBy { demand, worker, types, once: self.random.chance(50) }
    }

    fn recent_worker(&mut self) -> Option<(WorkerId, Registration)> {
        let recent = self.workers.len().saturating_sub(6);
        self.random.pick(&self.workers[recent..]).cloned()
    }

    /// A move about one of the latest workers, or a first one.
    pub(super) fn about_worker(&mut self, about: impl FnOnce(WorkerId) -> Move) -> Move {
        match self.recent_worker() {
            Some((id, _)) => about(id),
            None => self.register(),
        }
    }

    /// The same about a demand.
    pub(super) fn about_demand(&mut self, about: impl FnOnce(u64) -> Move) -> Move {
        match self.random.pick(&self.demands).copied() {
            Some(demand) => about(demand),
            None => self.stand_by(),
        }
    }

    pub(super) fn beat(&mut self) -> Move {
        let Some((id, _)) = self.recent_worker() else { return self.register() };
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

    pub(super) fn schedule(&mut self, command: ScheduleCommand) -> Move {
        let namespace = self.namespace();
        let id = Name::from(SCHEDULES[self.random.below(SCHEDULES.len())]);
        Move::Schedule(ScheduleRequest { key: ScheduleKey { namespace, id }, command })
    }

    pub(super) fn new_schedule(&mut self) -> Box<NewSchedule> {
        let overlaps = [
            Overlap::Skip,
            Overlap::BufferOne,
            Overlap::BufferAll,
            Overlap::Allow,
            Overlap::CancelPrevious,
            Overlap::TerminatePrevious,
        ];
        let overlap = *self.random.pick(&overlaps).expect("there are some");
        let every_ms = 5_000 * (1 + self.random.below(6) as i64);
        Box::new(NewSchedule {
            uid: self.random.uuid(),
            plan: Plan {
                timing: Timing::Interval { every_ms, phase_ms: 0 },
                workflow_type: TYPES[self.random.below(TYPES.len())].into(),
                task_queue: QUEUES[0].into(),
                options: RunOptions::default(),
                labels: Default::default(),
                overlap,
                jitter_ms: if self.random.chance(30) { 2_000 } else { 0 },
                max_catchup: self.random.below(5) as u32,
            },
            input: Payload::new(&b"\xfe on time"[..]),
            paused: self.random.chance(10).then(|| "later".to_owned()),
        })
    }

    pub(super) fn trigger(&mut self) -> ScheduleCommand {
        let run = RunId(self.random.uuid());
        ScheduleCommand::Trigger { run, trigger: format!("t-{}", self.random.below(4)).into() }
    }

    pub(super) fn backfill(&mut self, now: Timestamp) -> ScheduleCommand {
        let to = now.plus_ms(-(self.random.below(30_000) as i64));
        let after = to.plus_ms(-(self.random.below(60_000) as i64));
        ScheduleCommand::Backfill(Backfill { after, to, at_once: self.random.chance(50) })
    }

    pub(super) fn change_namespace(&mut self, command: NamespaceCommand) -> Move {
        let name = match &command {
            // The second one is made by its first use, or by this.
            NamespaceCommand::Create(_) => self.namespaces[1].clone(),
            NamespaceCommand::Update(_) | NamespaceCommand::Disable { .. } | NamespaceCommand::Enable => {
                self.namespace()
            }
        };
        let limit = self.random.chance(10);
        let gate =
            limit.then(|| GateCommand::Limit { max_concurrent: Some(2 + self.random.below(6) as u32) });
        Move::Namespace(Box::new(ChangeNamespace { name, command, gate }))
    }

    pub(super) fn namespace_change(&mut self) -> NamespaceChange {
        NamespaceChange {
            description: self.random.chance(50).then(|| format!("d-{}", self.random.below(3))),
            retention_ms: self.random.chance(30).then(|| 10_000 * (1 + self.random.below(10) as i64)),
            ..NamespaceChange::default()
        }
    }

    pub(super) fn change_gate(&mut self, command: GateCommand) -> Move {
        let namespace = self.namespace();
        let gates = GateKey::before(&namespace, &QUEUES[0].into(), &TYPES[0].into());
        let key = self.random.pick(&gates).expect("there are three").clone();
        Move::Gate(ChangeGate { key, command })
    }
}
