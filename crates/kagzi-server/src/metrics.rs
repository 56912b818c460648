//! Metrics in Prometheus' text format, read from counters that exist anyway.

use std::fmt::Write;

use axum::{extract::State, http::header, response::IntoResponse};
use kagzi_engine::Engine;
use kagzi_store::LaneStats;

/// The page that Prometheus reads.
pub async fn page(State(engine): State<Engine>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render(&engine))
}

fn render(engine: &Engine) -> String {
    let stats = engine.store().stats();
    let count = LaneStats::get;
    let commits = count(&stats.commits);
    let commands = count(&stats.commands);
    let seconds = count(&stats.commit_micros) as f64 / 1e6;
    let mut page = Page::default();
    page.counter("kagzi_commits_total", "Transactions committed, each with one fsync", commits as f64);
    page.counter("kagzi_commands_total", "Commands decided", commands as f64);
    page.gauge(
        "kagzi_commands_per_commit",
        "Commands that shared one fsync, on average since the start",
        commands as f64 / (commits.max(1)) as f64,
    );
    page.counter("kagzi_commands_refused_total", "Commands refused", count(&stats.refused) as f64);
    page.counter(
        "kagzi_stale_writes_refused_total",
        "Writes refused because their lease was lost",
        count(&stats.refused_stale) as f64,
    );
    page.counter("kagzi_events_total", "Lines of history written", count(&stats.events) as f64);
    page.counter("kagzi_leases_total", "Runs given to workers", count(&stats.leases) as f64);
    page.counter("kagzi_leases_lost_total", "Leases taken away", count(&stats.leases_lost) as f64);
    page.counter("kagzi_commit_seconds_total", "Time spent loading, writing and committing", seconds);
    page.counter("kagzi_commit_errors_total", "Batches not committed", count(&stats.commit_errors) as f64);
    page.counter(
        "kagzi_commit_conflicts_total",
        "Batches repeated because another server wrote first",
        count(&stats.conflicts) as f64,
    );
    page.gauge("kagzi_worker_streams", "Workers connected to this server", engine.hub().sessions() as f64);
    let help = "How far the clock that decides, the database's if it has one, is ahead of this machine's";
    page.gauge("kagzi_clock_skew_seconds", help, engine.clock().skew_ms() as f64 / 1e3);
    page.gauge("kagzi_uptime_seconds", "Time since the start", engine.uptime().as_secs_f64());
    page.head("kagzi_runs_finished_total", "Runs ended, by outcome", "counter");
    for (outcome, n) in engine.hub().outcomes() {
        page.line(&format!("kagzi_runs_finished_total{{outcome=\"{outcome}\"}}"), n as f64);
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "counter");
        self.line(name, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.line(name, value);
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a String takes all");
    }

    fn line(&mut self, name: &str, value: f64) {
        writeln!(self.text, "{name} {value}").expect("a String takes all");
    }
}
