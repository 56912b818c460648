//! What a scripted workflow does, as its input: the test writes it, the worker process follows it.

use serde::{Deserialize, Serialize};

/// One workflow, move by move.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Script {
    pub moves: Vec<Move>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Move {
    Step(StepPlan),
    Sleep {
        ms: u64,
    },
    /// The function itself waits for a gate, outside any step.
    Gate {
        name: String,
    },
    /// Waits for a signal on this channel.
    Signal {
        channel: String,
    },
    /// Waits for so many events on this topic, one after the other.
    Events {
        topic: String,
        count: usize,
    },
    /// Takes so many signals on this channel, one after the other.
    Signals {
        channel: String,
        count: usize,
    },
    /// Waits for a signal on this channel for so long, and says with its results what it heard.
    SignalWithin {
        channel: String,
        ms: u64,
    },
    /// Makes a promise and waits for it, and says with its results what became of it.
    Promise {
        name: String,
        timeout_ms: Option<u64>,
    },
    /// Answers so many requests on this channel, each with what it was asked.
    Answers {
        channel: String,
        count: usize,
    },
    /// Starts so many runs of the type `script`, side by side.
    Children {
        count: usize,
        script: Script,
        fate: Fate,
    },
    /// The workflow function panics.
    Panic {
        message: String,
    },
    /// The process dies without a word.
    Abort,
}

/// What becomes of children that a script starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// The script waits for all of them, and returns their results with its own.
    Awaited,
    /// Nobody waits for them; those that live when the script ends are cancelled.
    Closed,
    /// They outlive the script.
    Abandoned,
}

/// One step: it logs that it began, has its effect, waits at its gate, fails as planned, and returns.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StepPlan {
    pub name: String,
    /// Goes on once the test has opened this gate.
    pub gate: Option<String>,
    /// The first attempt hangs at the gate without ever giving its future back to be dropped; the process
    /// lives on.
    pub blocks: bool,
    /// This many attempts never return.
    pub hangs: u32,
    /// The step's own start-to-close timeout.
    pub timeout_ms: Option<u64>,
    /// This many attempts fail.
    pub failures: u32,
    /// This many attempts panic.
    pub panics: u32,
    pub retry_ms: Option<u64>,
    pub attempts_max: Option<i32>,
}

/// What a step returns: different for every execution, so that a test sees which one was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    pub step: String,
    pub nonce: String,
    pub pid: u32,
}

impl StepResult {
    /// What a script was told from outside, among its results.
    pub fn told(by: &str, what: impl Into<String>) -> StepResult {
        StepResult { step: by.to_owned(), nonce: what.into(), pid: 0 }
    }

    /// What the script that returned this was told, if this is no result of a step.
    pub fn heard(self) -> Option<String> {
        (self.pid == 0).then_some(self.nonce)
    }
}

impl Script {
    /// Plain steps, one after the other.
    pub fn steps(names: &[&str]) -> Script {
        names.iter().fold(Script::default(), |script, name| script.step(name))
    }

    pub fn step(self, name: &str) -> Script {
        self.planned(StepPlan { name: name.into(), ..StepPlan::default() })
    }

    /// A step that waits for a gate of the same name.
    pub fn gated(self, name: &str) -> Script {
        self.planned(StepPlan { name: name.into(), gate: Some(name.into()), ..StepPlan::default() })
    }

    pub fn planned(self, plan: StepPlan) -> Script {
        self.then(Move::Step(plan))
    }

    pub fn then(mut self, next: Move) -> Script {
        self.moves.push(next);
        self
    }
}
