//! What operators may ask for: namespaces, gates, and a worker taken offline.

use kagzi_model::{
    ControlRejection, Gate, GateCommand, GateKey, Name, Namespace, NamespaceCommand, Timestamp, WorkerId, ago,
};
use kagzi_store::{ChangeGate, ChangeNamespace, Offline};

use crate::{Engine, EngineError, SessionEvent};

impl Engine {
    /// Creates or changes a namespace.
    pub async fn change_namespace(
        &self,
        name: Name,
        command: NamespaceCommand,
    ) -> Result<Namespace, EngineError> {
        self.change_namespace_and_gate(name, command, None).await
    }

    /// The same, and in the same commit the gate before all its queues.
    pub async fn change_namespace_and_gate(
        &self,
        name: Name,
        command: NamespaceCommand,
        gate: Option<GateCommand>,
    ) -> Result<Namespace, EngineError> {
        Ok(self.store().ask(ChangeNamespace { name, command, gate }).await??)
    }

    /// One namespace, or a refusal that names it.
    pub async fn read_namespace(&self, name: &Name) -> Result<Namespace, EngineError> {
        let found = self.store().namespace(name).await?;
        Ok(found.ok_or_else(|| ControlRejection::Unknown(name.clone()))?)
    }

    /// Pauses, resumes or limits what is behind a gate.
    pub async fn change_gate(&self, key: GateKey, command: GateCommand) -> Result<Gate, EngineError> {
        Ok(self.store().ask(ChangeGate { key, command }).await??)
    }

    /// Takes a worker out of the registry although it may live: its runs go to others at once. One that is
    /// connected here is told to stop.
    pub async fn take_offline(&self, id: WorkerId) -> Result<u32, EngineError> {
        let released = self.store().ask(Offline { id }).await??;
        self.hub().tell(id, SessionEvent::Drain);
        Ok(released)
    }

    /// The gate that keeps a run of this queue and type from being claimed, in words; none when all let it
    /// through.
    pub(crate) async fn held_by(
        &self,
        (namespace, task_queue, workflow_type): (&Name, &Name, &Name),
        now: Timestamp,
    ) -> Result<Option<String>, EngineError> {
        let mut gates = self.store().gates(namespace).await?;
        gates.retain(|gate| gate.key.covers(namespace, task_queue, workflow_type));
        if gates.is_empty() {
            return Ok(None);
        }
        if let Some((gate, mark)) = gates.iter().find_map(|gate| Some((gate, gate.paused.as_ref()?))) {
            let (what, note) = (described(&gate.key), &mark.note);
            let note = if note.is_empty() { String::new() } else { format!(": {note}") };
            let (by, since) = (&mark.by, ago(now, mark.since));
            return Ok(Some(format!(
                "{what} was paused by {by} {since} ago{note}; let it go on with: kagzi queue resume{}",
                arguments(&gate.key)
            )));
        }
        let depths = self.store().depths(namespace, now).await?;
        for gate in &gates {
            let behind = depths
                .iter()
                .filter(|depth| gate.key.covers(namespace, &depth.task_queue, &depth.workflow_type));
            let leased: u64 = behind.map(|depth| depth.leased).sum();
            if let Some(most) = gate.max_concurrent
                && leased >= u64::from(most)
            {
                let what = described(&gate.key);
                return Ok(Some(format!("{what} is limited to {most} runs at once, and {leased} run now")));
            }
        }
        Ok(None)
    }
}

/// What stands behind a gate, for people.
fn described(key: &GateKey) -> String {
    match key.columns() {
        ("", _) => format!("namespace '{}'", key.namespace),
        (queue, "") => format!("queue '{queue}'"),
        (queue, kind) => format!("type '{kind}' on queue '{queue}'"),
    }
}

/// How the command line names a gate.
fn arguments(key: &GateKey) -> String {
    match key.columns() {
        ("", _) => " --all".to_owned(),
        (queue, "") => format!(" {queue}"),
        (queue, kind) => format!(" {queue} --type {kind}"),
    }
}
