use kagzi_shell::output::{self, Format};
use kagzi_shell::table;
use serde::Serialize;

/// What one measurement found. The JSON form is a contract with those who keep records.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub workload: &'static str,
    pub store: &'static str,
    pub mode: &'static str,
    pub runs: u64,
    pub concurrency: u32,
    pub seconds: f64,
    pub runs_per_s: f64,
    pub steps_per_s: f64,
    pub latency_ms: LatencyMs,
    /// Null when the server is not ours (`--addr`) or there is no /proc.
    pub server_rss_mb: Option<f64>,
    pub worker_rss_mb: Option<f64>,
    /// By the servers to disk under full load. Null for other workloads than plain ones, and where the
    /// servers are not processes of our own. PostgreSQL writes by itself, so its servers write nothing.
    pub written_bytes_per_run: Option<f64>,
    pub errors: u64,
    /// What only this workload has.
    #[serde(flatten)]
    pub more: Option<More>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum More {
    Sleepers(Sleepers),
    Backlog(Backlog),
    Recovery(Recovery),
    FanOut(FanOut),
    Signals(Signals),
    Waiters(Waiters),
    Burst(Burst),
}

#[derive(Debug, Serialize)]
pub struct Sleepers {
    /// From due to the last end.
    pub drain_s: f64,
    /// That woke before they were due: must be none.
    pub early: u64,
    pub late_ms: LatencyMs,
    /// Of runs of three steps on another queue, one at a time.
    pub neighbour_p99_ms: BeforeAndDuring,
}

/// While everybody slept, and while they were woken.
#[derive(Debug, Serialize)]
pub struct BeforeAndDuring {
    pub before: Option<f64>,
    pub during: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Backlog {
    /// Runs that slept in the store while the figures were taken.
    pub backlog: u64,
    /// The same load on the same processes when the store was empty.
    pub empty_runs_per_s: f64,
    /// How long it took to put them there.
    pub fill_s: f64,
    /// From starting a server, whose predecessor was killed, to its first durable answer.
    pub startup_s: f64,
    /// Of that server then.
    pub startup_rss_mb: Option<f64>,
}

/// Of runs whose worker was killed, in seconds from the kill.
#[derive(Debug, Serialize)]
pub struct Recovery {
    /// The first was given to another worker.
    pub recovered_first_s: f64,
    /// All were.
    pub recovered_all_s: f64,
    /// All had ended.
    pub finished_all_s: f64,
}

#[derive(Debug, Serialize)]
pub struct FanOut {
    /// As many runs of w0 in the same processes, started one by one by a client.
    pub by_client_s: f64,
    /// How often the parent was given to a worker: once to start its children, once when the last had ended.
    pub dispatches: u32,
}

/// Runs per second count from the start of the first to the end of the last; the latency is from the signal
/// to the code that goes on, one at a time.
#[derive(Debug, Serialize)]
pub struct Signals {
    /// Until all were started and waited.
    pub waiting_s: f64,
    /// From then until all were told and had ended.
    pub told_s: f64,
    /// w3 in the same processes.
    pub w3_runs_per_s: f64,
}

/// w3's figures are those beside the runs that wait.
#[derive(Debug, Serialize)]
pub struct Waiters {
    /// Runs that waited for a signal while the figures were taken.
    pub waiters: u64,
    /// Until all were started and waited.
    pub waiting_s: f64,
    /// Of the servers then, before anything else was run.
    pub waiting_rss_mb: Option<f64>,
    /// The same load on the same processes when the store was empty.
    pub empty_runs_per_s: f64,
}

/// The seconds count until the run had taken the last signal and ended.
#[derive(Debug, Serialize)]
pub struct Burst {
    /// Until every signal was acknowledged.
    pub told_s: f64,
    /// How often somebody was refused because too many lay unread, and sent again.
    pub refused: u64,
    /// Of runs of three steps on another queue, one at a time.
    pub neighbour_p99_ms: BeforeAndDuring,
}

#[derive(Debug, Serialize)]
pub struct LatencyMs {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

pub fn print(figures: &Figures, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => output::print(&serde_json::to_string(figures)?),
        Format::Table => output::print(&as_fields(figures)),
    }
}

/// Figures with errors in them are printed, but not trusted.
pub fn verdict(all: &[&Figures]) -> anyhow::Result<()> {
    let errors: u64 = all.iter().map(|figures| figures.errors).sum();
    anyhow::ensure!(errors == 0, "{errors} runs did not complete with the right result");
    Ok(())
}

fn as_fields(figures: &Figures) -> String {
    let mb = |value: Option<f64>| value.map(|mb| format!("{mb} MB"));
    let mut fields = vec![
        ("workload", Some(format!("{} on {}, processes {}", figures.workload, figures.store, figures.mode))),
        ("runs", Some(format!("{} at concurrency {}", figures.runs, figures.concurrency))),
        ("seconds", Some(figures.seconds.to_string())),
        ("runs/s", Some(figures.runs_per_s.to_string())),
        ("steps/s", Some(figures.steps_per_s.to_string())),
        ("latency p50", ms(figures.latency_ms.p50)),
        ("latency p99", ms(figures.latency_ms.p99)),
        ("server RSS", mb(figures.server_rss_mb)),
        ("worker RSS", mb(figures.worker_rss_mb)),
        ("written per run", figures.written_bytes_per_run.map(|bytes| format!("{bytes} bytes"))),
    ];
    match &figures.more {
        Some(More::Sleepers(slept)) => fields.extend([
            ("drained", Some(format!("{} s after due", slept.drain_s))),
            ("early", Some(slept.early.to_string())),
            ("late p50", ms(slept.late_ms.p50)),
            ("late p99", ms(slept.late_ms.p99)),
            ("neighbour p99 before", ms(slept.neighbour_p99_ms.before)),
            ("neighbour p99 during", ms(slept.neighbour_p99_ms.during)),
        ]),
        Some(More::Backlog(backlog)) => fields.extend([
            ("asleep beside", Some(format!("{}, put there in {} s", backlog.backlog, backlog.fill_s))),
            ("empty runs/s", Some(backlog.empty_runs_per_s.to_string())),
            ("start-up", Some(format!("{} s", backlog.startup_s))),
            ("RSS then", mb(backlog.startup_rss_mb)),
        ]),
        Some(More::Recovery(recovery)) => fields.extend([
            ("first elsewhere", Some(format!("{} s after the kill", recovery.recovered_first_s))),
            ("all elsewhere", Some(format!("{} s after the kill", recovery.recovered_all_s))),
            ("all finished", Some(format!("{} s after the kill", recovery.finished_all_s))),
        ]),
        Some(More::FanOut(family)) => fields.extend([
            ("by a client", Some(format!("{} s for as many runs of w0", family.by_client_s))),
            ("parent dispatched", Some(format!("{} times", family.dispatches))),
        ]),
        Some(More::Signals(told)) => fields.extend([
            ("all waiting", Some(format!("after {} s", told.waiting_s))),
            ("all told and ended", Some(format!("{} s later", told.told_s))),
            ("w3 runs/s", Some(told.w3_runs_per_s.to_string())),
        ]),
        Some(More::Waiters(crowd)) => fields.extend([
            ("waiting beside", Some(format!("{}, after {} s", crowd.waiters, crowd.waiting_s))),
            ("RSS when all waited", mb(crowd.waiting_rss_mb)),
            ("empty runs/s", Some(crowd.empty_runs_per_s.to_string())),
        ]),
        Some(More::Burst(burst)) => fields.extend([
            ("all told", Some(format!("after {} s", burst.told_s))),
            ("refused, sent again", Some(burst.refused.to_string())),
            ("neighbour p99 before", ms(burst.neighbour_p99_ms.before)),
            ("neighbour p99 during", ms(burst.neighbour_p99_ms.during)),
        ]),
        None => {}
    }
    fields.push(("errors", Some(figures.errors.to_string())));
    table::text(table::of_fields(fields))
}

fn ms(value: Option<f64>) -> Option<String> {
    value.map(|ms| format!("{ms} ms"))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample() -> Figures {
        Figures {
            workload: "w3",
            store: "sqlite",
            mode: "separate",
            runs: 20_000,
            concurrency: 512,
            seconds: 2.5,
            runs_per_s: 8_000.0,
            steps_per_s: 24_000.0,
            latency_ms: LatencyMs { p50: Some(0.9), p99: Some(2.25) },
            server_rss_mb: Some(48.5),
            worker_rss_mb: Some(21.0),
            written_bytes_per_run: Some(5_120.0),
            errors: 0,
            more: None,
        }
    }

    #[test]
    fn the_json_object_has_the_documented_shape() {
        insta::assert_snapshot!(output::json(&sample()));
    }

    #[test]
    fn sleepers_have_four_figures_more() {
        let late_ms = LatencyMs { p50: Some(12.0), p99: Some(80.5) };
        let neighbour_p99_ms = BeforeAndDuring { before: Some(4.0), during: Some(7.5) };
        let sleepers = Sleepers { drain_s: 0.9, early: 0, late_ms, neighbour_p99_ms };
        let figures = Figures { more: Some(More::Sleepers(sleepers)), ..sample() };
        let json = serde_json::to_value(figures).unwrap();

        assert_eq!((&json["drain_s"], &json["early"]), (&0.9.into(), &0.into()));
        assert_eq!(json["late_ms"]["p99"], 80.5);
        assert_eq!(json["neighbour_p99_ms"]["during"], 7.5);
        assert_eq!(json.as_object().unwrap().len(), 17);
    }

    #[test]
    fn the_table_names_every_figure() {
        insta::assert_snapshot!(as_fields(&sample()));
    }

    #[test]
    fn errors_fail_the_command() {
        assert!(verdict(&[&sample()]).is_ok());
        assert!(verdict(&[&sample(), &Figures { errors: 1, ..sample() }]).is_err());
    }
}
