//! `kagzi bench` with loads so small that they say nothing about speed, but run everything that a large one
//! runs.

mod stage;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kagzi_store_postgres::fixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::{DEADLINE, Server, complaint, kagzi, printed};
use tokio::process::Command;

/// Measures in `dir`, which must be empty again afterwards.
async fn bench(dir: &Path, args: &[&str]) -> Value {
    let mut all = vec!["bench", "--json", "--scratch", dir.to_str().unwrap()];
    all.extend(args);
    let output = kagzi(&all).await;
    let figures: Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "the scratch directory is gone");
    figures
}

const SMALL: [&str; 6] = ["--runs", "20", "--concurrency", "8", "--latency-runs", "5"];

const FIELDS: [&str; 13] = [
    "concurrency",
    "errors",
    "latency_ms",
    "mode",
    "runs",
    "runs_per_s",
    "seconds",
    "server_rss_mb",
    "steps_per_s",
    "store",
    "worker_rss_mb",
    "workload",
    "written_bytes_per_run",
];

fn fields(figures: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = figures.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn steps_are_measured_with_processes_of_their_own_and_in_one() {
    let dir = tempfile::tempdir().unwrap();

    let separate = bench(dir.path(), &[&SMALL[..], &["--workload", "w3"]].concat()).await;
    let embedded = bench(dir.path(), &[&SMALL[..], &["--workload", "w0", "--embedded"]].concat()).await;

    for (figures, workload, mode) in [(&separate, "w3", "separate"), (&embedded, "w0", "embedded")] {
        assert_eq!(fields(figures), FIELDS);
        assert_eq!((&figures["workload"], &figures["mode"]), (&workload.into(), &mode.into()));
        assert_eq!((&figures["errors"], &figures["runs"]), (&0.into(), &20.into()));
        assert!(figures["runs_per_s"].as_f64().unwrap() > 0.0 && figures["server_rss_mb"].is_number());
    }
}

#[tokio::test]
async fn a_server_that_runs_already_is_loaded_and_left_running() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("theirs.db")).await;

    let figures = bench(scratch.path(), &[&SMALL[..], &["--addr", &server.address]].concat()).await;

    assert_eq!((&figures["errors"], &figures["server_rss_mb"]), (&0.into(), &Value::Null));
    printed(&kagzi(&["run", "list", "--address", &server.address]).await);
    server.kill().await;
}

#[tokio::test]
async fn sleepers_wake_together_and_none_early() {
    let dir = tempfile::tempdir().unwrap();

    let figures = bench(dir.path(), &["--workload", "sleepers", "--runs", "40"]).await;

    assert_eq!((&figures["errors"], &figures["early"]), (&0.into(), &0.into()), "{figures}");
    assert!(figures["drain_s"].as_f64().unwrap() > 0.0 && figures["late_ms"]["p99"].is_number(), "{figures}");
    let neighbour = &figures["neighbour_p99_ms"];
    assert!(neighbour["before"].is_number() && neighbour["during"].is_number(), "{figures}");
}

#[tokio::test]
async fn a_backlog_is_compared_with_the_empty_store() {
    let dir = tempfile::tempdir().unwrap();

    let args = [&SMALL[..], &["--workload", "backlog", "--backlog", "60"]].concat();
    let figures = bench(dir.path(), &args).await;

    assert_eq!((&figures["errors"], &figures["backlog"]), (&0.into(), &60.into()), "{figures}");
    assert!(figures["empty_runs_per_s"].as_f64().unwrap() > 0.0, "{figures}");
    assert!(
        figures["startup_s"].as_f64().unwrap() > 0.0 && figures["startup_rss_mb"].is_number(),
        "{figures}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_fill_postgresql_too() {
    let postgres = fixture::Server::private();
    let (dir, store) = (tempfile::tempdir().unwrap(), postgres.url());

    let args = [&SMALL[..], &["--workload", "backlog", "--backlog", "60", "--store", &store]].concat();
    let figures = bench(dir.path(), &args).await;

    assert_eq!((&figures["errors"], &figures["backlog"]), (&0.into(), &60.into()), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_further_away_is_compared_with_the_same_one_near() {
    let postgres = fixture::Server::private();
    let (dir, store) = (tempfile::tempdir().unwrap(), postgres.url());
    let scratch = dir.path().to_str().unwrap();

    let args = ["bench", "distance", "--json", "--store", &store, "--delay-ms", "5", "--rounds", "1"];
    let figures = printed(&kagzi(&[&args[..], &SMALL[..], &["--scratch", scratch]].concat()).await);
    let figures: Value = serde_json::from_str(&figures).unwrap();

    let p50 = |place: &str| figures[place][0]["latency_ms"]["p50"].as_f64().unwrap();
    assert!(p50("far") > p50("near") + 5.0, "{figures}");
    assert!(figures["share"].as_f64().unwrap() > 0.0, "{figures}");
    assert_eq!((&figures["near"][0]["errors"], &figures["far"][0]["errors"]), (&0.into(), &0.into()));
}

#[tokio::test]
async fn runs_of_a_killed_worker_go_on_elsewhere() {
    let dir = tempfile::tempdir().unwrap();

    let figures = bench(dir.path(), &["--workload", "recovery", "--runs", "12"]).await;

    assert_eq!((&figures["errors"], &figures["runs"]), (&0.into(), &12.into()), "{figures}");
    let seconds = |name: &str| figures[name].as_f64().unwrap();
    assert!(seconds("recovered_first_s") > 0.0, "{figures}");
    assert!(seconds("recovered_first_s") <= seconds("recovered_all_s"), "{figures}");
    assert!(seconds("recovered_all_s") <= seconds("finished_all_s"), "{figures}");
}

#[tokio::test]
async fn a_long_history_is_taken_over_and_a_family_is_raised() {
    let dir = tempfile::tempdir().unwrap();

    let history = bench(dir.path(), &["--workload", "history", "--steps", "60"]).await;
    let family = bench(dir.path(), &["--workload", "fan-out", "--runs", "30", "--concurrency", "64"]).await;

    assert_eq!(history["errors"], 0, "{history}");
    assert!(history["seconds"].as_f64().unwrap() < 60.0, "{history}");
    assert_eq!((&family["errors"], &family["runs"]), (&0.into(), &30.into()), "{family}");
    // Once to start its children, and once when the last of them has ended.
    let dispatches = family["dispatches"].as_u64().unwrap();
    assert!((1..=2).contains(&dispatches), "{family}");
    assert!(family["by_client_s"].as_f64().unwrap() > 0.0, "{family}");
}

#[tokio::test]
async fn runs_wait_for_signals_and_are_compared_with_runs_that_do_not() {
    let dir = tempfile::tempdir().unwrap();

    let figures = bench(dir.path(), &[&SMALL[..], &["--workload", "signals"]].concat()).await;

    assert_eq!(figures["errors"], 0, "{figures}");
    let positive = |value: &Value| value.as_f64().unwrap() > 0.0;
    assert!(
        ["waiting_s", "told_s", "w3_runs_per_s"].iter().all(|name| positive(&figures[name])),
        "{figures}"
    );
    assert!(positive(&figures["latency_ms"]["p50"]), "{figures}");
}

#[tokio::test]
async fn w3_is_measured_beside_runs_that_wait_and_these_still_go_on() {
    let dir = tempfile::tempdir().unwrap();

    let args = [&SMALL[..], &["--workload", "waiters", "--backlog", "600"]].concat();
    let figures = bench(dir.path(), &args).await;

    assert_eq!((&figures["errors"], &figures["waiters"]), (&0.into(), &600.into()), "{figures}");
    let positive = |name: &str| figures[name].as_f64().unwrap() > 0.0;
    assert!(["waiting_s", "waiting_rss_mb", "empty_runs_per_s"].into_iter().all(positive), "{figures}");
}

#[tokio::test]
async fn a_burst_of_signals_is_taken_whole_beside_somebody_else() {
    let dir = tempfile::tempdir().unwrap();

    let figures = bench(dir.path(), &["--workload", "burst", "--runs", "200"]).await;

    assert_eq!((&figures["errors"], &figures["runs"]), (&0.into(), &200.into()), "{figures}");
    let neighbour = &figures["neighbour_p99_ms"];
    assert!(neighbour["before"].is_number() && neighbour["during"].is_number(), "{figures}");
    assert!(figures["told_s"].as_f64().unwrap() >= 0.99, "it took its second: {figures}");
}

#[tokio::test]
async fn more_children_than_a_run_may_have_are_not_tried() {
    let output = kagzi(&["bench", "--workload", "fan-out", "--runs", "10001"]).await;

    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("10000 children"), "{output:?}");
}

#[tokio::test]
async fn growth_is_written_as_figures_and_plots_one_axis_beside_the_other() {
    let (scratch, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (scratch_path, out_path) = (scratch.path().to_str().unwrap(), out.path().to_str().unwrap());
    let axes = [
        ("payload", "mb_per_s", 2),
        ("workers", "runs_per_s", 2),
        ("runs", "p50_ms", 3),
        ("claims", "sent_kb", 2),
    ];
    for (axis, _, _) in axes {
        let args =
            ["bench", "growth", "--quick", "--scratch", scratch_path, "--out", out_path, "--only", axis];
        let table = printed(&kagzi(&args).await);
        assert!(table.contains("runs/s") || axis == "claims" && table.contains("per claim"), "{table}");
    }

    let file = std::fs::read(out.path().join("growth.json")).unwrap();
    let all: Value = serde_json::from_slice(&file).unwrap();
    for (axis, figure, points) in axes {
        let measured = all["sqlite"][axis]["points"].as_array().unwrap();
        assert_eq!(measured.len(), points, "{all}");
        assert!(measured.iter().all(|point| point[figure].as_f64().unwrap() > 0.0), "{all}");
        let plot = std::fs::read_to_string(out.path().join(format!("growth-{axis}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("polyline"), "{plot}");
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "the scratch directories are gone");
}

#[tokio::test]
async fn the_guard_prints_a_ratio_and_a_debug_build_is_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    let record = tempfile::NamedTempFile::new().unwrap();
    let file = record.path().to_str().unwrap();
    let scratch = dir.path().to_str().unwrap();
    let run = async |more: &[&str]| {
        let args = ["bench", "guard", "--json", "--runs", "50", "--scratch", scratch, "--file", file];
        serde_json::from_str::<Value>(&printed(&kagzi(&[&args[..], more].concat()).await)).unwrap()
    };

    let recorded = run(&["--record"]).await;
    let compared = run(&[]).await;

    assert!(recorded["ratio"].as_f64().unwrap() > 0.0, "{recorded}");
    assert_eq!(compared["recorded_ratio"], recorded["ratio"]);
    let verdict = compared["verdict"].as_str().unwrap();
    assert!(!cfg!(debug_assertions) || verdict == "not judged: a debug build", "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_a_scratch_database_that_is_dropped_afterwards() {
    let postgres = fixture::Server::private();
    let dir = tempfile::tempdir().unwrap();
    let store = postgres.url();

    let args = [&SMALL[..], &["--workload", "servers", "--servers", "2", "--store", &store]].concat();
    let figures = bench(dir.path(), &args).await;

    assert_eq!((&figures["errors"], &figures["store"]), (&0.into(), &"postgres".into()), "{figures}");
    assert_eq!(scratch_databases(&store).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_no_process_no_file_and_no_database_behind() {
    let postgres = fixture::Server::private();
    let url = postgres.url();
    for store in ["sqlite", &url] {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Command::new(env!("CARGO_BIN_EXE_kagzi"))
            .args(["bench", "--runs", "10000000", "--store", store, "--scratch"])
            .arg(dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = bench.id().unwrap();
        // The worker is the last that is started.
        let children = until(|| Some(children_of(pid)).filter(|children| children.len() == 2)).await;

        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::INT).unwrap();
        let ended = tokio::time::timeout(DEADLINE, bench.wait()).await.expect("it ends").unwrap();

        assert!(!ended.success());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{store}: files are left");
        let gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
        until(|| children.iter().all(gone).then_some(())).await;
        if store != "sqlite" {
            assert_eq!(scratch_databases(store).await, 0, "a database is left");
        }
    }
}

#[tokio::test]
async fn top_prints_one_frame_of_a_real_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("top.db")).await;
    let client = kagzi::Client::connect(server.address.as_str()).await.unwrap();
    client.workflow("order", "orders", 1).await.unwrap();
    let top = async |more: &[&str]| {
        let args = ["top", "--once", "--interval", "0.1", "--address", &server.address];
        printed(&kagzi(&[&args[..], more].concat()).await)
    };

    let text = top(&[]).await;
    let json: Value = serde_json::from_str(&top(&["-o", "json"]).await).unwrap();

    assert!(text.contains("QUEUE") && text.contains("orders") && text.contains("PENDING 1"), "{text}");
    assert!(text.contains("no worker is online") && !text.contains('\x1b'), "{text}");
    assert_eq!(
        (&json["queues"][0]["task_queue"], &json["queues"][0]["ready"]),
        (&"orders".into(), &1.into())
    );
    assert!(json["commits_per_s"].is_number(), "{json}");
    let unreachable = kagzi(&["top", "--once", "--address", "127.0.0.1:1"]).await;
    assert_eq!(unreachable.status.code(), Some(7), "{}", complaint(&unreachable));
    server.kill().await;
}

async fn scratch_databases(url: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT count(*) FROM pg_database WHERE datname LIKE 'kagzi_bench_%'";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn children_of(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut all: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    // A runtime's threads start children too.
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.expect("it happens in time")
}
