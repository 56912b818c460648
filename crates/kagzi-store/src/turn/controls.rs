//! The controls' part of a turn: who may start, which gates stand before a claim, and what operators change.

use kagzi_model::{
    ControlRejection, DEFAULT_NAMESPACE, Gate, GateCommand, GateKey, Name, Namespace, Rejection, StartRun,
    limits::GATES_PER_NAMESPACE_MAX,
};

use super::Turn;
use crate::{AsideRow, Backend, ChangeGate, ChangeNamespace, LaneStats, QueueKey, StoreError, hash::HashSet};

impl<B: Backend> Turn<'_, B> {
    pub(super) async fn change_namespace(
        &mut self,
        ChangeNamespace { name, command, gate }: &ChangeNamespace,
    ) -> Result<Result<Namespace, ControlRejection>, StoreError> {
        self.look_up(name).await?;
        let seen = self.controls.get(name);
        let changed = match Namespace::decide(self.now, seen, name, command) {
            Ok(changed) => changed,
            Err(refused) => return Ok(Err(refused)),
        };
        // Both are decided before either is put: what is refused leaves nothing behind.
        let gate = match gate {
            Some(command) => match self.decide_gate(&GateKey::namespace(name), command) {
                Ok(gate) => gate.1,
                Err(refused) => return Ok(Err(refused)),
            },
            None => None,
        };
        if let Some(changed) = changed {
            self.controls.namespaces.put(changed);
        }
        if let Some(gate) = gate {
            self.put_gate(gate);
        }
        let now = self.controls.get(name).expect("a decided namespace is known").clone();
        Ok(Ok(now))
    }

    pub(super) async fn change_gate(
        &mut self,
        ChangeGate { key, command }: &ChangeGate,
    ) -> Result<Result<Gate, ControlRejection>, StoreError> {
        self.look_up(&key.namespace).await?;
        if !self.ensure_namespace(&key.namespace) {
            return Ok(Err(ControlRejection::Unknown(key.namespace.clone())));
        }
        let (now, changed) = match self.decide_gate(key, command) {
            Ok(decided) => decided,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(changed) = changed {
            self.put_gate(changed);
        }
        Ok(Ok(now))
    }

    /// The gate as it is after the command, and as what is to be written, if anything is.
    fn decide_gate(
        &self,
        key: &GateKey,
        command: &GateCommand,
    ) -> Result<(Gate, Option<Gate>), ControlRejection> {
        let seen = self.controls.gate(key).cloned();
        let room = seen.is_some() || self.controls.gates_len(&key.namespace) < GATES_PER_NAMESPACE_MAX;
        let seen = seen.unwrap_or_else(|| Gate::open(key.clone(), self.now));
        match seen.decide(self.now, command) {
            None => Ok((seen, None)),
            Some(changed) if room => Ok((changed.clone(), Some(changed))),
            Some(_) => {
                let (namespace, max) = (key.namespace.clone(), GATES_PER_NAMESPACE_MAX);
                Err(ControlRejection::TooManyGates { namespace, max })
            }
        }
    }

    fn put_gate(&mut self, gate: Gate) {
        let key = gate.key.clone();
        self.controls.put_gate(gate);
        self.board.unblock(&key);
        self.opened.insert(key);
    }

    /// Whether a new run may start, and the run with its open fields filled (none when nothing fills them).
    pub(super) async fn admit(
        &mut self,
        start: &StartRun,
    ) -> Result<Result<Option<StartRun>, Rejection>, StoreError> {
        let admitted = self.admit_to(&start.namespace).await?;
        // The repeat of a start is answered, even when a new one would be refused.
        if let Err(refused) = admitted
            && self.fold.taken_by(start).is_none()
        {
            return Ok(Err(refused));
        }
        Ok(Ok(self.fill(start)))
    }

    /// Whether a namespace takes new runs.
    pub(super) async fn admit_to(&mut self, namespace: &Name) -> Result<Result<(), Rejection>, StoreError> {
        let admitted = self.admitted(namespace).await?;
        if admitted.is_err() && self.shared {
            // A refusal writes nothing, so nothing would notice that another server knows better.
            self.look_up(namespace).await?;
            return self.admitted(namespace).await;
        }
        Ok(admitted)
    }

    async fn admitted(&mut self, namespace: &Name) -> Result<Result<(), Rejection>, StoreError> {
        self.load_controls(namespace).await?;
        if !self.ensure_namespace(namespace) {
            return Ok(Err(Rejection::NamespaceUnknown { namespace: namespace.clone() }));
        }
        Ok(self.controls.get(namespace).map_or(Ok(()), Namespace::admit))
    }

    /// The start with what its namespace and this server set; none when they set nothing.
    pub(super) fn fill(&self, start: &StartRun) -> Option<StartRun> {
        let server = &self.controls.server.defaults;
        let own = self.controls.get(&start.namespace).map(|known| &known.defaults);
        match own.filter(|own| !own.is_empty()) {
            Some(own) => Some(own.or(server).fill(start)),
            None if server.is_empty() => None,
            None => Some(server.fill(start)),
        }
    }

    /// Whether the namespace is there. One that nobody created is made now, where the server allows it.
    pub(super) fn ensure_namespace(&mut self, namespace: &Name) -> bool {
        if self.controls.get(namespace).is_some() {
            return true;
        }
        let server = &self.controls.server;
        let room = LaneStats::get(&self.stats.namespaces_made) < server.namespaces_made_max;
        let may = (server.create_namespaces && room) || **namespace == *DEFAULT_NAMESPACE;
        if may {
            LaneStats::add(&self.stats.namespaces_made, 1);
            self.controls.namespaces.put_implicit(Namespace::new(namespace.clone(), self.now));
        }
        may
    }

    /// Loads what is set for a namespace, unless it is known. On a shared database the commit checks that it
    /// still holds.
    pub(super) async fn load_controls(&mut self, namespace: &Name) -> Result<(), StoreError> {
        if self.shared && !self.consulted.contains(namespace) {
            self.consulted.insert(namespace.clone());
        }
        if self.controls.get(namespace).is_none()
            && let Some((row, gates)) = self.backend.load_controls(namespace).await?
        {
            self.controls.know(row, gates);
        }
        Ok(())
    }

    /// Loads what is set for a namespace, although memory may have it: another server may have changed it.
    async fn look_up(&mut self, namespace: &Name) -> Result<(), StoreError> {
        if self.shared {
            self.controls.evict(namespace);
        }
        self.load_controls(namespace).await
    }

    /// Loads a namespace that is in use, and creates its row if runs exist without one.
    pub(super) async fn controls_in_use(&mut self, namespace: &Name) -> Result<(), StoreError> {
        self.load_controls(namespace).await?;
        if self.controls.get(namespace).is_none() {
            self.controls.namespaces.put_implicit(Namespace::new(namespace.clone(), self.now));
        }
        Ok(())
    }

    /// The same, for runs that the engine takes up by itself: a namespace whose settings cannot be read is
    /// left alone, and others do not notice.
    pub(super) async fn controls_readable(&mut self, namespace: &Name) -> Result<bool, StoreError> {
        match self.controls_in_use(namespace).await {
            Ok(()) => {
                self.stats.aside.take_back(&AsideRow::Namespace(namespace.clone()));
                Ok(true)
            }
            Err(StoreError::Corrupt(why)) => {
                self.stats.aside.put(AsideRow::Namespace(namespace.clone()), &why, self.now);
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    /// Where the namespace's failure handler starts: where a worker registered it last, or where the
    /// namespace says.
    pub(super) async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        // A worker that registers one in this very batch is found from the next one on.
        if let Some(known) = self.handler_queues.get(namespace) {
            return Ok(known.clone());
        }
        let mut queue = self.backend.handler_queue(namespace).await?;
        if queue.is_none() {
            self.load_controls(namespace).await?;
            queue = self.controls.get(namespace).and_then(|known| known.handler_queue.clone());
        }
        self.handler_queues.insert(namespace.clone(), queue.clone());
        Ok(queue)
    }

    /// Leases that ended made room behind the gates before them: keys that these held up are looked at again.
    pub(super) async fn unblock_after_ended_leases(&mut self) -> Result<(), StoreError> {
        let ended: HashSet<QueueKey> = self
            .fold
            .touched
            .leases
            .iter()
            .filter(|moved| !moved.begun)
            .map(|moved| &moved.key)
            // Alone on the database, what this lane does not know holds nothing up.
            .filter(|key| self.shared || !self.controls.before(key).is_empty())
            .cloned()
            .collect();
        for key in ended {
            self.load_controls(&key.namespace).await?;
            let limited: Vec<GateKey> = self
                .controls
                .before(&key)
                .into_iter()
                .filter(|gate| gate.max_concurrent.is_some())
                .map(|gate| gate.key.clone())
                .collect();
            limited.iter().for_each(|gate| self.board.unblock(gate));
            self.opened.extend(limited);
        }
        Ok(())
    }

    /// Counts the leases behind every gate before these keys. On a shared database the gates are locked
    /// first, so that no other server claims behind them before this commit is done.
    pub(super) async fn lock_and_count_gates(&mut self, keys: &[QueueKey]) -> Result<(), StoreError> {
        let mut gates = HashSet::default();
        for key in keys {
            self.controls_in_use(&key.namespace).await?;
            gates.extend(self.controls.before(key).into_iter().map(|gate| gate.key.clone()));
        }
        if gates.is_empty() {
            return Ok(());
        }
        let mut gates: Vec<GateKey> = gates.into_iter().collect();
        gates.sort();
        if self.shared {
            let found = self.backend.lock_gates(&gates).await?;
            self.controls.refresh(&gates, found);
            return Ok(());
        }
        for key in gates {
            if !self.controls.counted(&key) {
                let leased = self.backend.leased_behind(&key).await?;
                self.controls.set_leased(key, leased);
            }
        }
        Ok(())
    }

    /// What the commit must still find as it was when it was consulted.
    pub(super) fn require_versions(&mut self) {
        let versions: Vec<(Name, u64)> = self
            .consulted
            .iter()
            .filter_map(|name| self.controls.get(name).map(|known| (name.clone(), known.version)))
            .collect();
        if !versions.is_empty() {
            self.backend.require_versions(versions);
        }
    }

    /// Gates that let something through now and may have held something up before, on a shared database.
    pub(super) fn opened(&mut self) -> Vec<GateKey> {
        let opened = std::mem::take(&mut self.opened);
        if !self.shared {
            return Vec::new();
        }
        opened.into_iter().filter(|key| self.controls.may_pass(key)).collect()
    }
}
