use crate::output::{self, wants_colours};
use kagzi_shell::progress::{self, ProgressBar};
use std::io::IsTerminal;

/// Tells the story: a spinner per phase on a terminal, plain lines elsewhere.
pub struct Narrator {
    on_terminal: bool,
    tick_mark: &'static str,
}

/// Something that is going on. Dropped without [`Phase::done`], it only clears its spinner.
pub struct Phase {
    spinner: ProgressBar,
    tick_mark: &'static str,
}

impl Narrator {
    pub fn new() -> Self {
        let stdout = std::io::stdout();
        let tick_mark = if wants_colours(&stdout) { "\x1b[32m✓\x1b[0m" } else { "✓" };
        Narrator { on_terminal: stdout.is_terminal(), tick_mark }
    }

    pub fn say(&self, text: &str) -> anyhow::Result<()> {
        output::print(text)
    }

    pub fn phase(&self, text: &str) -> anyhow::Result<Phase> {
        if !self.on_terminal {
            output::print(&format!("- {text}"))?;
        }
        let spinner = progress::spinner(text);
        Ok(Phase { spinner, tick_mark: self.tick_mark })
    }
}

impl Phase {
    pub fn done(self, text: &str) -> anyhow::Result<()> {
        self.spinner.finish_and_clear();
        output::print(&format!("{} {text}", self.tick_mark))
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}
