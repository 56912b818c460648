use crate::output::{self, Format};
use crate::table;
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
    pub errors: u64,
    /// Only of the workload of that name.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub sleepers: Option<Sleepers>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
}

#[derive(Debug, Serialize)]
pub struct Sleepers {
    /// From due to the last end.
    pub drain_s: f64,
    /// That woke before they were due: must be none.
    pub early: u64,
    pub late_ms: LatencyMs,
}

#[derive(Debug, Serialize)]
pub struct Backlog {
    /// Runs that slept in the store while the figures were taken.
    pub backlog: u64,
    /// The same load on the same processes when the store was empty.
    pub empty_runs_per_s: f64,
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
    let ms = |value: Option<f64>| value.map(|ms| format!("{ms} ms"));
    table::text(table::of_fields([
        ("workload", Some(format!("{} on {}, processes {}", figures.workload, figures.store, figures.mode))),
        ("runs", Some(format!("{} at concurrency {}", figures.runs, figures.concurrency))),
        ("seconds", Some(figures.seconds.to_string())),
        ("runs/s", Some(figures.runs_per_s.to_string())),
        ("steps/s", Some(figures.steps_per_s.to_string())),
        ("latency p50", figures.latency_ms.p50.map(|ms| format!("{ms} ms"))),
        ("latency p99", figures.latency_ms.p99.map(|ms| format!("{ms} ms"))),
        ("server RSS", figures.server_rss_mb.map(|mb| format!("{mb} MB"))),
        ("worker RSS", figures.worker_rss_mb.map(|mb| format!("{mb} MB"))),
        ("drained", figures.sleepers.as_ref().map(|slept| format!("{} s after due", slept.drain_s))),
        ("early", figures.sleepers.as_ref().map(|slept| slept.early.to_string())),
        ("late p50", figures.sleepers.as_ref().and_then(|slept| ms(slept.late_ms.p50))),
        ("late p99", figures.sleepers.as_ref().and_then(|slept| ms(slept.late_ms.p99))),
        ("asleep beside", figures.backlog.as_ref().map(|slept| slept.backlog.to_string())),
        ("empty runs/s", figures.backlog.as_ref().map(|slept| slept.empty_runs_per_s.to_string())),
        ("errors", Some(figures.errors.to_string())),
    ]))
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
            errors: 0,
            sleepers: None,
            backlog: None,
        }
    }

    #[test]
    fn the_json_object_has_the_documented_shape() {
        insta::assert_snapshot!(output::json(&sample()));
    }

    #[test]
    fn sleepers_have_three_figures_more() {
        let late_ms = LatencyMs { p50: Some(12.0), p99: Some(80.5) };
        let sleepers = Some(Sleepers { drain_s: 0.9, early: 0, late_ms });
        let json = serde_json::to_value(Figures { sleepers, ..sample() }).unwrap();

        assert_eq!((&json["drain_s"], &json["early"]), (&0.9.into(), &0.into()));
        assert_eq!(json["late_ms"]["p99"], 80.5);
        assert_eq!(json.as_object().unwrap().len(), 15);
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
