//! The worker registry: one row per worker, and the rules by which it changes.

use std::collections::BTreeMap;

use crate::{Lease, Millis, Name, Timestamp, WorkerId};

/// What a worker says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub namespace: Name,
    pub task_queue: Name,
    pub workflow_types: Vec<Name>,
    pub hostname: Name,
    pub pid: i32,
    pub version: Name,
    pub max_concurrent: u32,
    /// Free-form; the identity of a container lives here, since its pid is always 1.
    pub labels: BTreeMap<String, String>,
}

impl Registration {
    /// It registered the failure handler of its namespace.
    pub fn handles_failures(&self) -> bool {
        self.workflow_types.iter().any(|name| **name == *crate::FAILURE_HANDLER)
    }
}

/// One registered worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    pub registration: Registration,
    pub status: WorkerStatus,
    pub completed_total: i64,
    pub failed_total: i64,
    pub registered_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub deregistered_at: Option<Timestamp>,
    /// Rises with every change of the row. Not to be confused with the version of the worker's program.
    pub row_version: u64,
}

/// A change of the registry, as plain data. Each is safe to send twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCommand<'a> {
    /// It comes, or comes back: after a restart, a drain, or because it was taken for lost.
    Register(&'a Registration),
    /// A sign of life.
    Beat,
    /// It is to finish what it has and to take nothing new.
    Drain,
    /// It goes, or is lost, or an operator takes it out.
    Leave,
}

/// Why a registry change or a demand is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("worker {0} is not registered; call RegisterWorker first")]
    Unknown(WorkerId),
    #[error("worker {0} is offline; call RegisterWorker again")]
    Offline(WorkerId),
    #[error("worker {0} is draining and takes no new work")]
    Draining(WorkerId),
    #[error("worker {worker} did not register workflow type '{name}'")]
    UnknownType { worker: WorkerId, name: Name },
    #[error("worker id {0} is taken by a worker of another namespace or task queue; leave worker_id empty")]
    Taken(WorkerId),
    #[error("there is no namespace '{0}'; create it with: kagzi ns create {0}")]
    UnknownNamespace(Name),
    #[error(
        "namespace '{namespace}' has {max} workers online, as many as it may have (worker.online_max); a \
         worker that is \
         no longer needed is taken offline with: kagzi worker offline"
    )]
    TooMany { namespace: Name, max: u32 },
}

impl Worker {
    /// The worker after a command.
    pub fn decide(
        now: Timestamp,
        seen: Option<&Worker>,
        id: WorkerId,
        command: WorkerCommand<'_>,
    ) -> Result<Worker, RegistryError> {
        let known = || seen.ok_or(RegistryError::Unknown(id));
        let here = || match known()? {
            gone if gone.status == WorkerStatus::Offline => Err(RegistryError::Offline(id)),
            there => Ok(there),
        };
        let changed = match command {
            WorkerCommand::Register(registration) => {
                let of = (&registration.namespace, &registration.task_queue);
                if seen.is_some_and(|seen| seen.is_of_another(of)) {
                    return Err(RegistryError::Taken(id));
                }
                Worker {
                    id,
                    registration: registration.clone(),
                    status: WorkerStatus::Online,
                    completed_total: seen.map_or(0, |seen| seen.completed_total),
                    failed_total: seen.map_or(0, |seen| seen.failed_total),
                    // The newest registration of a failure handler decides where it starts, so a later one
                    // is never older, even while the clock stands still.
                    registered_at: seen.map_or(now, |seen| now.max(Timestamp(seen.registered_at.0 + 1))),
                    heartbeat_at: now,
                    deregistered_at: None,
                    row_version: seen.map_or(0, |seen| seen.row_version),
                }
            }
            WorkerCommand::Beat => {
                let here = here()?;
                Worker { heartbeat_at: here.heartbeat_at.max(now), ..here.clone() }
            }
            WorkerCommand::Drain => Worker { status: WorkerStatus::Draining, ..here()?.clone() },
            WorkerCommand::Leave => {
                let there = known()?;
                // Gone twice, the first time is when it went.
                let deregistered_at = there.deregistered_at.or(Some(now));
                Worker { status: WorkerStatus::Offline, deregistered_at, ..there.clone() }
            }
        };
        Ok(Worker { row_version: changed.row_version + 1, ..changed })
    }

    /// Counts runs that it completed or failed.
    pub fn count(&mut self, completed: i64, failed: i64) {
        self.completed_total += completed;
        self.failed_total += failed;
        self.row_version += 1;
    }

    /// It is a worker of another namespace or task queue than `of`. An id alone proves nothing, since
    /// everybody can list them.
    pub fn is_of_another(&self, of: (&Name, &Name)) -> bool {
        (&self.registration.namespace, &self.registration.task_queue) != of
    }

    /// Whether it may be given new work of these types.
    pub fn takes(&self, types: &[Name]) -> Result<(), RegistryError> {
        match self.status {
            WorkerStatus::Online => {}
            WorkerStatus::Draining => return Err(RegistryError::Draining(self.id)),
            WorkerStatus::Offline => return Err(RegistryError::Offline(self.id)),
        }
        match types.iter().find(|name| !self.registration.workflow_types.contains(name)) {
            Some(name) => Err(RegistryError::UnknownType { worker: self.id, name: name.clone() }),
            None => Ok(()),
        }
    }

    /// How many more runs it may hold.
    pub fn room(&self, holds: u32) -> u32 {
        match self.status {
            WorkerStatus::Online => self.registration.max_concurrent.saturating_sub(holds),
            WorkerStatus::Draining | WorkerStatus::Offline => 0,
        }
    }

    /// Nothing was heard of it since before `before`, and nobody said that it has gone.
    pub fn is_stale(&self, before: Timestamp) -> bool {
        self.status != WorkerStatus::Offline && self.heartbeat_at < before
    }

    /// Its connection broke at `since`, and nothing was heard of it after that.
    pub fn is_cut_off(&self, since: Timestamp) -> bool {
        self.status != WorkerStatus::Offline && self.heartbeat_at <= since
    }
}

/// Until when a lease lasts after a heartbeat. It is renewed once less than two thirds of it are left, so
/// that most heartbeats write no run.
pub fn renewed_until(now: Timestamp, held: Option<&Lease>, lease_ms: Millis) -> Timestamp {
    match held {
        Some(held) if held.until.remaining_ms(now) > lease_ms * 2 / 3 => held.until,
        Some(_) | None => now.plus_ms(lease_ms),
    }
}

/// Whether a worker takes work; the numbers are part of the API and of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerStatus {
    Online = 1,
    /// Finishes what it has and takes nothing new.
    Draining = 2,
    Offline = 3,
}

impl WorkerStatus {
    /// The status with this number; an unknown number is a corrupt row, never "offline".
    pub fn from_number(number: i64) -> Option<WorkerStatus> {
        [WorkerStatus::Online, WorkerStatus::Draining, WorkerStatus::Offline]
            .into_iter()
            .find(|status| *status as i64 == number)
    }

    /// The status's name as users read and type it.
    pub fn name(self) -> &'static str {
        match self {
            WorkerStatus::Online => "ONLINE",
            WorkerStatus::Draining => "DRAINING",
            WorkerStatus::Offline => "OFFLINE",
        }
    }

    /// The status a user typed, if it is one.
    pub fn from_name(name: &str) -> Option<WorkerStatus> {
        [WorkerStatus::Online, WorkerStatus::Draining, WorkerStatus::Offline]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const ID: WorkerId = WorkerId(Uuid::from_u128(7));

    fn registration() -> Registration {
        Registration {
            namespace: "shop".into(),
            task_queue: "orders".into(),
            workflow_types: vec!["charge".into()],
            hostname: "host".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent: 2,
            labels: BTreeMap::new(),
        }
    }

    fn registered() -> Worker {
        Worker::decide(NOW, None, ID, WorkerCommand::Register(&registration())).unwrap()
    }

    fn after(seen: &Worker, at: Timestamp, command: WorkerCommand<'_>) -> Result<Worker, RegistryError> {
        Worker::decide(at, Some(seen), ID, command)
    }

    #[test]
    fn a_drained_or_lost_worker_comes_back_only_by_a_new_registration() {
        let drained = after(&registered(), NOW, WorkerCommand::Drain).unwrap();
        let beaten = after(&drained, NOW.plus_ms(1), WorkerCommand::Beat).unwrap();
        let gone = after(&beaten, NOW.plus_ms(2), WorkerCommand::Leave).unwrap();
        let back = after(&gone, NOW.plus_ms(3), WorkerCommand::Register(&registration())).unwrap();

        assert_eq!((drained.status, beaten.status), (WorkerStatus::Draining, WorkerStatus::Draining));
        let offline = Err(RegistryError::Offline(ID));
        assert_eq!(after(&gone, NOW, WorkerCommand::Beat), offline);
        assert_eq!(after(&gone, NOW, WorkerCommand::Drain), offline);
        assert_eq!((back.status, back.deregistered_at), (WorkerStatus::Online, None));
        assert!(back.takes(&["charge".into()]).is_ok() && gone.takes(&[]).is_err());
    }

    #[test]
    fn who_left_twice_left_the_first_time_and_every_change_raises_the_version() {
        let gone = after(&registered(), NOW.plus_ms(5), WorkerCommand::Leave).unwrap();
        let again = after(&gone, NOW.plus_ms(9), WorkerCommand::Leave).unwrap();
        let mut counted = again.clone();
        counted.count(2, 1);

        assert_eq!(again.deregistered_at, Some(NOW.plus_ms(5)));
        let versions = [&registered(), &gone, &again, &counted].map(|worker| worker.row_version);
        assert_eq!(versions, [1, 2, 3, 4]);
        assert_eq!((counted.completed_total, counted.failed_total), (2, 1));
    }

    #[test]
    fn an_id_serves_its_own_namespace_and_queue_and_nobody_unknown() {
        let foreign = Registration { task_queue: "mail".into(), ..registration() };
        let commands = [WorkerCommand::Beat, WorkerCommand::Drain, WorkerCommand::Leave];

        assert_eq!(
            after(&registered(), NOW, WorkerCommand::Register(&foreign)),
            Err(RegistryError::Taken(ID))
        );
        for command in commands {
            assert_eq!(Worker::decide(NOW, None, ID, command), Err(RegistryError::Unknown(ID)));
        }
    }

    #[test]
    fn a_registration_keeps_the_totals_and_is_newer_even_while_the_clock_stands() {
        let mut seen = registered();
        seen.count(5, 3);

        let again = after(&seen, NOW, WorkerCommand::Register(&registration())).unwrap();

        assert_eq!((again.completed_total, again.failed_total), (5, 3));
        assert!(again.registered_at > seen.registered_at);
    }

    #[test]
    fn a_heartbeat_of_a_clock_that_is_behind_makes_nobody_older() {
        let seen = registered();

        let beaten = after(&seen, NOW.plus_ms(-500), WorkerCommand::Beat).unwrap();

        assert_eq!(beaten.heartbeat_at, NOW);
        assert!(seen.is_stale(NOW.plus_ms(1)) && !seen.is_stale(NOW));
        assert!(seen.is_cut_off(NOW) && !seen.is_cut_off(NOW.plus_ms(-1)));
    }

    #[test]
    fn room_is_for_the_online_only() {
        let drained = after(&registered(), NOW, WorkerCommand::Drain).unwrap();

        assert_eq!((registered().room(1), registered().room(5), drained.room(0)), (1, 0, 0));
    }

    #[test]
    fn a_lease_is_renewed_when_less_than_two_thirds_are_left() {
        let held =
            |left: i64| Lease { worker: ID, until: NOW.plus_ms(left), since: NOW, step_timeout_at: None };
        let until = |left: i64| renewed_until(NOW, Some(&held(left)), 30_000);

        assert_eq!((until(20_001), until(20_000)), (NOW.plus_ms(20_001), NOW.plus_ms(30_000)));
        assert_eq!(renewed_until(NOW, None, 30_000), NOW.plus_ms(30_000));
    }
}
