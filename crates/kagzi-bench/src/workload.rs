//! What a benchmark's runs do and what they must return.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// As bench/RESULTS.md and the docs name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// No steps, returns its input.
    W0,
    /// 3 sequential steps, each returning a small JSON.
    W3,
    /// 10 sequential steps.
    W10,
    /// 10,000 runs asleep, all due in the same second.
    Sleepers,
    /// w3 beside a million sleeping runs.
    Backlog,
    /// One run with 10,000 steps, taken over near its end.
    History,
    /// One run that has 1,000 children and waits for all of them, beside as many runs of w0 that a client
    /// starts.
    FanOut,
    /// Runs that wait for a signal, are told it and end, beside w3.
    Signals,
    /// w3 beside a million runs that wait for a signal.
    Waiters,
    /// 10,000 signals to one run within a second, beside somebody on another queue.
    Burst,
    /// w3 with several servers on one PostgreSQL.
    Servers,
    /// 1,000 runs in flight on a worker that is killed.
    Recovery,
}

/// A workload of runs with nothing but steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub steps: u32,
    /// Of the input and of each result, about.
    pub payload_len: usize,
    /// Whether each run has a business id, which the store must find to be free.
    pub named: bool,
}

/// How much of it.
pub struct Load {
    pub shape: Shape,
    pub runs: u64,
    pub concurrency: u32,
    pub latency_runs: u64,
}

impl Shape {
    /// Payloads of about 100 bytes.
    pub const fn of_steps(name: &'static str, steps: u32) -> Shape {
        Shape { name, steps, payload_len: NOTE.len() + AROUND_NOTE_LEN, named: false }
    }
}

impl Workload {
    pub fn shape(self) -> Shape {
        match self {
            Workload::W0 => Shape::of_steps("w0", 0),
            Workload::W3 => Shape::of_steps("w3", 3),
            Workload::W10 => Shape::of_steps("w10", 10),
            Workload::Sleepers => Shape::of_steps("sleepers", 0),
            Workload::Backlog => Shape::of_steps("backlog", 3),
            Workload::History => Shape::of_steps("history", 0),
            Workload::FanOut => Shape::of_steps("fan-out", 0),
            Workload::Signals => Shape::of_steps("signals", 0),
            Workload::Waiters => Shape::of_steps("waiters", 0),
            Workload::Burst => Shape::of_steps("burst", 0),
            Workload::Servers => Shape::of_steps("servers", 3),
            Workload::Recovery => Shape::of_steps("recovery", 3),
        }
    }

    /// As many as the documents say.
    pub fn runs(self) -> u64 {
        match self {
            Workload::W0 | Workload::W3 | Workload::W10 => 20_000,
            Workload::Backlog | Workload::Servers | Workload::Signals | Workload::Waiters => 20_000,
            Workload::Sleepers | Workload::Burst => 10_000,
            Workload::FanOut | Workload::Recovery => 1_000,
            Workload::History => 1,
        }
    }
}

/// One workflow type serves all shapes: the input says how many steps to run. About 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub n: u64,
    pub steps: u32,
    pub note: String,
}

/// What a step returns. About 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    pub n: u64,
    pub step: u32,
    pub note: String,
}

/// What a run returns: its input if it has no steps, otherwise what its steps returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    Steps(Vec<StepResult>),
    Input(Input),
}

pub const WORKFLOW_TYPE: &str = "bench";
pub const SLEEPER: &str = "bench-sleeper";
pub const PARENT: &str = "bench-parent";
pub const POLLER: &str = "bench-poller";
pub const SIGNALLED: &str = "bench-signalled";
pub const COLLECTOR: &str = "bench-collector";

/// The channel on which a signalled run is told to go on.
pub const GO: &str = "go";

/// The channel on which a collector is told its numbers.
pub const ITEM: &str = "item";

/// Sleeps until then, by this machine's clock, and answers when it woke.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sleep {
    pub due_ms: u64,
}

/// When a sleeper went to sleep and woke, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Slept {
    pub asleep_ms: u64,
    pub woke_ms: u64,
}

/// Looks so many times whether something has happened, with a pause after each look: a claim for each pause.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Rounds {
    pub rounds: u32,
    pub pause_ms: u64,
}

/// Has this many children of w0 and waits for them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Family {
    pub children: u64,
}

/// What a signalled run was told, and when its code went on, in microseconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heard {
    pub said: Input,
    pub heard_us: u64,
}

/// Takes so many signals, each of which is a number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collection {
    pub signals: u64,
}

/// How many different numbers a collector has taken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collected {
    pub different: u64,
}

pub fn now_ms() -> u64 {
    now_us() / 1000
}

pub fn now_us() -> u64 {
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX)
}

const NOTE: &str = "sixty-four bytes of text so that a payload has a realistic size.";
/// What JSON adds to it: names, numbers and punctuation.
const AROUND_NOTE_LEN: usize = 36;

impl Input {
    pub fn new(shape: Shape, n: u64) -> Self {
        let note_len = shape.payload_len.saturating_sub(AROUND_NOTE_LEN);
        let note = NOTE.chars().cycle().take(note_len).collect();
        Input { n, steps: shape.steps, note }
    }

    pub fn expected_output(&self) -> Output {
        match self.steps {
            0 => Output::Input(self.clone()),
            steps => Output::Steps((0..steps).map(|step| self.step_result(step)).collect()),
        }
    }

    /// What step number `step` of this run returns.
    pub fn step_result(&self, step: u32) -> StepResult {
        StepResult { n: self.n, step, note: self.note.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_about_a_hundred_bytes() {
        let input = Input::new(Workload::W3.shape(), 12_345);

        assert!((80..120).contains(&serde_json::to_vec(&input).unwrap().len()));
        assert!((80..120).contains(&serde_json::to_vec(&input.step_result(1)).unwrap().len()));
    }

    #[test]
    fn larger_payloads_have_about_the_size_that_was_asked_for() {
        let shape = Shape { payload_len: 10 << 10, ..Shape::of_steps("payload", 1) };
        let len = serde_json::to_vec(&Input::new(shape, 12_345)).unwrap().len();

        assert!((10_230..=10_250).contains(&len), "{len}");
    }

    #[test]
    fn w0_returns_its_input_and_w3_the_list_of_its_step_results() {
        let w0 = Input::new(Workload::W0.shape(), 7);
        let w3 = Input::new(Workload::W3.shape(), 7);

        assert_eq!(w0.expected_output(), Output::Input(w0));
        let Output::Steps(steps) = w3.expected_output() else { panic!("w3 has steps") };
        assert_eq!(
            steps.iter().map(|result| (result.n, result.step)).collect::<Vec<_>>(),
            [(7, 0), (7, 1), (7, 2)]
        );
    }

    #[test]
    fn outputs_survive_the_way_through_json() {
        for workload in [Workload::W0, Workload::W3] {
            let output = Input::new(workload.shape(), 1).expected_output();
            let json = serde_json::to_vec(&output).unwrap();
            assert_eq!(serde_json::from_slice::<Output>(&json).unwrap(), output);
        }
    }
}
