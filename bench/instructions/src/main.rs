//! Executes one of the model's hot functions many times: `kagzi-instructions NAME TIMES`, or `--list`.
//! Callgrind counts what happens inside [`measured`]; scripts/instructions.sh compares that with
//! bench/instructions.json.

mod scene;

use std::hint::black_box;
use std::process::ExitCode;

use kagzi_model::{Aggregate, Command, Payload, Rejection, decide};

/// What is counted. The script knows this name.
#[inline(never)]
fn measured<T>(times: u32, mut work: impl FnMut() -> T) {
    for _ in 0..times {
        black_box(work());
    }
}

/// A run's steps are kept in a hash table with random keys: another table, another order, a few per cent more
/// or less. Over so many tables it evens out.
const TABLES: u32 = 50;

/// A command and what it meets. All are accepted: refusals are rare and cheap.
struct Hot {
    name: &'static str,
    seen: fn() -> Option<Aggregate>,
    input: Option<Payload>,
    command: Command,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let hot = scene::hot();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => {
            hot.iter().for_each(|hot| println!("{}", hot.name));
            println!("{APPLY}");
            ExitCode::SUCCESS
        }
        [name, times] => {
            let Ok(times) = times.parse::<u32>() else { return complain("TIMES is a number") };
            let found = hot.iter().find(|hot| hot.name == name);
            let counted = match found {
                Some(hot) => decide_often(hot, times / TABLES),
                None if name == APPLY => apply_often(times / TABLES),
                None => return complain(&format!("there is no {name}; --list names them")),
            };
            match counted {
                Ok(()) => ExitCode::SUCCESS,
                Err(rejection) => complain(&format!("{name} was refused: {rejection}")),
            }
        }
        _ => complain("usage: kagzi-instructions NAME TIMES | --list"),
    }
}

fn decide_often(hot: &Hot, times: u32) -> Result<(), Rejection> {
    for _ in 0..TABLES {
        let seen = (hot.seen)();
        let once = || decide(scene::NOW, seen.as_ref(), hot.input.as_ref(), black_box(&hot.command));
        once()?;
        measured(times, once);
    }
    Ok(())
}

const APPLY: &str = "apply_step";

/// Taking a decision over: a step that is known already, so that every time is like the first.
fn apply_often(times: u32) -> Result<(), Rejection> {
    for _ in 0..TABLES {
        let mut seen = scene::leased();
        let change = decide(scene::NOW, Some(&seen), None, &scene::record_step())?;
        seen.apply(scene::NOW, &change);
        measured(times, || seen.apply(scene::NOW, black_box(&change)));
    }
    Ok(())
}

fn complain(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}
