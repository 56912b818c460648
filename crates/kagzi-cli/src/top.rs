//! `kagzi top`: queues, workers, runs and rates, redrawn until somebody stops it.

mod frame;
mod metrics;
mod sample;

use crate::output::{self, Format};
use crate::session::Session;
use crate::stop;
use crate::terminal::{harmless, harmless_json};
use frame::Frame;
use sample::Sample;
use std::io::{IsTerminal, Write};
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Print one frame and end, for scripts.
    #[arg(long)]
    once: bool,
    /// Seconds between two frames; rates are averages over them.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = interval)]
    interval: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err(format!("'{text}' is not a number of seconds from 0.1 to 3600")),
    }
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let live = !args.once && session.format == Format::Table && std::io::stdout().is_terminal();
    let _screen = live.then(Screen::open);
    tokio::select! {
        ended = watch(&args, session, live) => ended,
        heard = stop::requested() => heard,
    }
}

async fn watch(args: &Args, session: &Session, live: bool) -> anyhow::Result<()> {
    let mut before = Sample::take(session).await?;
    loop {
        tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
        let now = Sample::take(session).await?;
        let frame = Frame::between(&before, &now);
        match session.format {
            Format::Json => output::print(&harmless_json(&serde_json::to_string(&frame)?))?,
            Format::Table if live => draw(&frame.text())?,
            Format::Table => output::print(&frame.text())?,
        }
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

/// Over the former frame, line by line: clearing the screen first would flicker.
fn draw(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "\x1b[H")?;
    for line in harmless(text, output::styles(&stdout)).lines() {
        write!(stdout, "{line}\x1b[K\r\n")?;
    }
    write!(stdout, "\x1b[J")?;
    Ok(stdout.flush()?)
}

/// The terminal's second screen, given back when it goes out of scope: what stood there before comes back.
struct Screen;

impl Screen {
    fn open() -> Screen {
        // A terminal that is gone is noticed by the first frame.
        let _ = write!(std::io::stdout(), "\x1b[?1049h\x1b[?25l");
        Screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut stdout = std::io::stdout();
        // Nobody is left to tell.
        let _ = write!(stdout, "\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush());
    }
}
