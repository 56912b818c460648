//! What a benchmark's runs do and what they must return.

use crate::exit::Trouble;
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
    /// 10,000 runs asleep, all due in the same second (not available yet).
    Sleepers,
    /// w3 on top of a million runs (not available yet).
    Backlog,
    /// One run with 10,000 steps, taken over near its end (not available yet).
    History,
    /// One run that starts 1,000 children (not available yet).
    FanOut,
    /// w3 with several servers on one database (not available yet).
    Servers,
}

/// A workload of runs with nothing but steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub steps: u32,
}

/// How much of it.
pub struct Load {
    pub shape: Shape,
    pub runs: u64,
    pub concurrency: u32,
    pub latency_runs: u64,
}

impl Workload {
    pub fn shape(self) -> Option<Shape> {
        match self {
            Workload::W0 => Some(Shape { name: "w0", steps: 0 }),
            Workload::W3 => Some(Shape { name: "w3", steps: 3 }),
            Workload::W10 => Some(Shape { name: "w10", steps: 10 }),
            Workload::Sleepers
            | Workload::Backlog
            | Workload::History
            | Workload::FanOut
            | Workload::Servers => None,
        }
    }

    pub fn unavailable(self) -> anyhow::Error {
        let name = self.to_possible_value().map_or("this".to_owned(), |value| value.get_name().to_owned());
        Trouble::usage(format!("workload {name} is not available yet; choose w0, w3 or w10"))
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

const NOTE: &str = "sixty-four bytes of text so that a payload has a realistic size.";

impl Input {
    pub fn new(shape: Shape, n: u64) -> Self {
        Input { n, steps: shape.steps, note: NOTE.to_owned() }
    }

    pub fn expected_output(&self) -> Output {
        match self.steps {
            0 => Output::Input(self.clone()),
            steps => Output::Steps((0..steps).map(|step| self.step_result(step)).collect()),
        }
    }

    /// What step number `step` of this run returns.
    pub fn step_result(&self, step: u32) -> StepResult {
        StepResult { n: self.n, step, note: NOTE.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_about_a_hundred_bytes() {
        let input = Input::new(Workload::W3.shape().unwrap(), 12_345);

        assert!((80..120).contains(&serde_json::to_vec(&input).unwrap().len()));
        assert!((80..120).contains(&serde_json::to_vec(&input.step_result(1)).unwrap().len()));
    }

    #[test]
    fn w0_returns_its_input_and_w3_the_list_of_its_step_results() {
        let w0 = Input::new(Workload::W0.shape().unwrap(), 7);
        let w3 = Input::new(Workload::W3.shape().unwrap(), 7);

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
            let output = Input::new(workload.shape().unwrap(), 1).expected_output();
            let json = serde_json::to_vec(&output).unwrap();
            assert_eq!(serde_json::from_slice::<Output>(&json).unwrap(), output);
        }
    }

    #[test]
    fn a_workload_that_is_not_available_is_a_usage_error_with_its_name() {
        let error = Workload::FanOut.unavailable();

        assert!(matches!(error.downcast_ref(), Some(Trouble::Usage(_))));
        assert!(error.to_string().contains("fan-out"), "{error}");
    }
}
