use crate::moment;
use crate::table::{self, Mood};
use jiff::Timestamp;
use kagzi_proto::v1::{Gate, Queue, QueueType};
use serde::Serialize;

/// What an operator set, as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct GateView {
    pub paused: bool,
    pub paused_by: Option<String>,
    pub paused_note: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub max_concurrent: Option<u32>,
}

/// A queue as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct QueueView {
    pub task_queue: String,
    pub ready: u64,
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
    pub workers: u32,
    pub gate: Option<GateView>,
    pub types: Vec<TypeView>,
}

/// One type on a queue as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct TypeView {
    pub workflow_type: String,
    pub ready: u64,
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
    pub workers: u32,
    pub gate: Option<GateView>,
}

impl From<Gate> for GateView {
    fn from(gate: Gate) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        GateView {
            paused: gate.paused,
            paused_by: said(gate.paused_by),
            paused_note: said(gate.paused_note),
            paused_at: moment::from_wire(gate.paused_at),
            max_concurrent: gate.max_concurrent,
        }
    }
}

impl GateView {
    /// What it does, in a few words.
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if self.paused {
            let by = self.paused_by.as_deref().unwrap_or("somebody");
            let note = self.paused_note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            parts.push(format!("paused by {by}{note}"));
        }
        if let Some(most) = self.max_concurrent {
            parts.push(format!("limited to {most} at once"));
        }
        parts.join(", ")
    }
}

impl From<Queue> for QueueView {
    fn from(queue: Queue) -> Self {
        QueueView {
            task_queue: queue.task_queue,
            ready: queue.ready,
            waiting: queue.waiting,
            leased: queue.leased,
            oldest_ready_at: moment::from_wire(queue.oldest_ready_at),
            workers: queue.workers,
            gate: queue.gate.map(GateView::from),
            types: queue.types.into_iter().map(TypeView::from).collect(),
        }
    }
}

impl From<QueueType> for TypeView {
    fn from(kind: QueueType) -> Self {
        TypeView {
            workflow_type: kind.workflow_type,
            ready: kind.ready,
            waiting: kind.waiting,
            leased: kind.leased,
            oldest_ready_at: moment::from_wire(kind.oldest_ready_at),
            workers: kind.workers,
            gate: kind.gate.map(GateView::from),
        }
    }
}

/// One line of a table: a queue, or a type on it.
struct Line<'a> {
    name: &'a str,
    counts: [u64; 3],
    oldest: Option<Timestamp>,
    workers: u32,
    gate: Option<&'a GateView>,
}

pub fn queues_table(queues: &[QueueView], now: Timestamp) -> String {
    let lines = queues.iter().map(|queue| Line {
        name: &queue.task_queue,
        counts: [queue.ready, queue.waiting, queue.leased],
        oldest: queue.oldest_ready_at,
        workers: queue.workers,
        gate: queue.gate.as_ref(),
    });
    as_table("QUEUE", lines, now)
}

pub fn types_table(queue: &QueueView, now: Timestamp) -> String {
    let lines = queue.types.iter().map(|kind| Line {
        name: &kind.workflow_type,
        counts: [kind.ready, kind.waiting, kind.leased],
        oldest: kind.oldest_ready_at,
        workers: kind.workers,
        gate: kind.gate.as_ref(),
    });
    as_table("TYPE", lines, now)
}

fn as_table<'a>(what: &str, lines: impl Iterator<Item = Line<'a>>, now: Timestamp) -> String {
    let mut table = table::with_columns(&[what, "READY", "OLDEST", "WAITING", "RUNNING", "WORKERS", "GATE"]);
    for line in lines {
        let [ready, waiting, leased] = line.counts;
        let stuck = ready > 0 && line.workers == 0;
        let mood = if stuck { Mood::Bad } else { Mood::Good };
        table.add_row([
            line.name.into(),
            ready.to_string().into(),
            line.oldest.map_or("-".into(), |at| moment::relative(at, now)).into(),
            waiting.to_string().into(),
            leased.to_string().into(),
            table::mood_cell(&line.workers.to_string(), mood),
            line.gate.map_or("-".to_owned(), GateView::sentence).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;
    use crate::run::sample_now;

    fn sample() -> Queue {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let limited = Gate { max_concurrent: Some(3), ..Gate::default() };
        let paused = Gate {
            paused: true,
            paused_by: "ada".into(),
            paused_note: "deploy".into(),
            paused_at: at(1_794_744_000),
            max_concurrent: None,
        };
        let refund = QueueType {
            workflow_type: "refund".into(),
            ready: 2,
            waiting: 0,
            leased: 1,
            oldest_ready_at: at(1_794_744_000),
            workers: 0,
            gate: Some(limited),
        };
        Queue {
            task_queue: "orders".into(),
            ready: 2,
            waiting: 4,
            leased: 1,
            oldest_ready_at: at(1_794_744_000),
            workers: 1,
            gate: Some(paused),
            types: vec![
                QueueType { workflow_type: "order".into(), waiting: 4, workers: 1, ..Default::default() },
                refund,
            ],
        }
    }

    #[test]
    fn queues_as_a_table() {
        insta::assert_snapshot!(queues_table(&[sample().into()], sample_now()));
    }

    #[test]
    fn types_as_a_table() {
        insta::assert_snapshot!(types_table(&sample().into(), sample_now()));
    }

    #[test]
    fn a_queue_as_json() {
        insta::assert_snapshot!(output::json(&QueueView::from(sample())));
    }
}
