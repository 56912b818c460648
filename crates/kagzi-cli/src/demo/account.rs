//! What really happened, step by step: how often each one ran, in which process, and whose result was kept.

use super::order::{Done, STEPS};
use super::step_log::Execution;
use std::collections::BTreeSet;

/// What the tour saw.
pub struct Seen {
    pub executions: Vec<Execution>,
    /// Steps that had a recorded result when the first worker died.
    pub recorded_before_kill: BTreeSet<String>,
    /// The results that the workflow ended with.
    pub done: Vec<Done>,
    pub killed: u32,
    pub successor: u32,
}

pub struct Account {
    /// One line per step, for the reader.
    pub lines: Vec<String>,
    /// What should not have happened.
    pub faults: Vec<String>,
}

pub fn render(seen: &Seen) -> Account {
    let mut account = Account { lines: Vec::new(), faults: Vec::new() };
    for step in STEPS {
        match line(seen, step) {
            Ok(line) => account.lines.push(line),
            Err(fault) => account.faults.push(fault),
        }
    }
    account
}

fn line(seen: &Seen, step: &str) -> Result<String, String> {
    let Seen { killed, successor, .. } = seen;
    let pids: Vec<u32> = seen
        .executions
        .iter()
        .filter(|execution| execution.step == step)
        .map(|execution| execution.pid)
        .collect();
    let kept = seen.done.iter().find(|done| done.step == step).map(|done| done.by_pid);
    let recorded_before = seen.recorded_before_kill.contains(step);

    if recorded_before && pids == [*killed] && kept == Some(*killed) {
        return Ok(format!("{step}: recorded by worker {killed}, replayed, not re-run (ran once)"));
    }
    if !recorded_before && pids == [*killed, *successor] && kept == Some(*successor) {
        return Ok(format!(
            "{step}: worker {killed} was killed in mid-step, worker {successor} ran it again \
             (ran twice, recorded once)"
        ));
    }
    if !recorded_before && pids == [*successor] && kept == Some(*successor) {
        return Ok(format!("{step}: run and recorded by worker {successor} (ran once)"));
    }
    let was = if recorded_before { "was" } else { "was not" };
    Err(format!(
        "{step}: ran in {pids:?}, {was} recorded before the kill, and the result kept is of {kept:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(executions: &[(&str, u32)], recorded: &[&str], kept: &[(&str, u32)]) -> Seen {
        let execution = |&(step, pid): &(&str, u32)| Execution { step: step.into(), pid };
        let done = |&(step, by_pid): &(&str, u32)| Done { step: step.into(), by_pid };
        Seen {
            executions: executions.iter().map(execution).collect(),
            recorded_before_kill: recorded.iter().map(|step| step.to_string()).collect(),
            done: kept.iter().map(done).collect(),
            killed: 11,
            successor: 22,
        }
    }

    const KEPT: [(&str, u32); 4] = [("reserve", 11), ("charge", 11), ("ship", 22), ("email", 22)];

    #[test]
    fn a_takeover_names_the_replayed_and_the_repeated_steps() {
        let executions = [("reserve", 11), ("charge", 11), ("ship", 11), ("ship", 22), ("email", 22)];

        let account = render(&seen(&executions, &["reserve", "charge"], &KEPT));

        assert_eq!(account.faults, [""; 0]);
        insta::assert_snapshot!(account.lines.join("\n"), @r"
        reserve: recorded by worker 11, replayed, not re-run (ran once)
        charge: recorded by worker 11, replayed, not re-run (ran once)
        ship: worker 11 was killed in mid-step, worker 22 ran it again (ran twice, recorded once)
        email: run and recorded by worker 22 (ran once)
        ");
    }

    #[test]
    fn a_recorded_step_that_ran_again_is_a_fault() {
        let executions =
            [("reserve", 11), ("charge", 11), ("ship", 11), ("charge", 22), ("ship", 22), ("email", 22)];

        let account = render(&seen(&executions, &["reserve", "charge"], &KEPT));

        assert_eq!(account.faults.len(), 1);
        assert!(
            account.faults[0].starts_with("charge: ran in [11, 22], was recorded"),
            "{}",
            account.faults[0]
        );
    }

    #[test]
    fn a_result_that_was_swapped_is_a_fault() {
        let executions = [("reserve", 11), ("charge", 11), ("ship", 11), ("ship", 22), ("email", 22)];
        let swapped = [("reserve", 22), ("charge", 11), ("ship", 22), ("email", 22)];

        let account = render(&seen(&executions, &["reserve", "charge"], &swapped));

        assert_eq!(account.faults.len(), 1);
    }

    #[test]
    fn a_step_that_never_ran_is_a_fault() {
        let account = render(&seen(&[], &[], &[]));

        assert_eq!(account.faults.len(), STEPS.len());
    }
}
