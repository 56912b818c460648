use std::collections::BTreeSet;

use kagzi_model::{Labels, Name, Payload, RunOptions, StartRun};

use super::{catalogue::ALL, *};
use crate::{Server, Settings, StoreUrl};

async fn metrics() -> Metrics {
    let server = Server::open(&StoreUrl::Memory, Settings::default()).await.unwrap();
    Metrics::new(
        server.engine().clone(),
        Arc::new(Progress::new(server.engine().clone(), server.stop_token())),
        Arc::default(),
        Arc::default(),
    )
}

fn repository(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test]
async fn the_page_has_every_metric_of_the_list_and_no_other() {
    let page = metrics().await.render().await;

    let typed: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let listed: Vec<String> =
        ALL.iter().map(|metric| format!("{} {}", metric.name, metric.kind.name())).collect();
    assert_eq!(typed, listed);
}

#[tokio::test]
async fn a_waiting_run_is_seen_in_its_queue_with_its_age() {
    let metrics = metrics().await;
    let id = Engine::new_run_id();
    let start = StartRun {
        namespace: Name::from("default"),
        id,
        business_id: None,
        workflow_type: Name::from("order"),
        task_queue: Name::from("orders"),
        input: Payload::new(&b""[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Labels::default(),
        signals: Vec::new(),
    };
    metrics.engine.start_runs(vec![start]).await.unwrap();

    let page = metrics.render().await;
    let queue = "{namespace=\"default\",queue=\"orders\"}";
    assert!(page.contains(&format!("kagzi_queue_ready{queue} 1\n")), "{page}");
    assert!(page.contains(&format!("kagzi_queue_ready_age_seconds{queue} ")), "{page}");
    assert!(page.contains("kagzi_ready 1\n"), "{page}");
}

#[test]
fn the_documentation_lists_every_metric() {
    let document = repository("docs/metrics.md");
    let (begin, end) = ("<!-- generated: metrics -->\n", "\n<!-- end of generated metrics -->");
    let (before, rest) = document.split_once(begin).expect("the page has its first mark");
    let (listed, after) = rest.split_once(end).expect("the page has its last mark");
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        let path = format!("{}/../../docs/metrics.md", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, format!("{before}{begin}{}{end}{after}", catalogue::document())).unwrap();
        return;
    }

    let hint = "write it anew with: KAGZI_WRITE_DOCS=1 cargo test -p kagzi-server documentation";
    assert_eq!(listed, catalogue::document(), "{hint}");
}

#[test]
fn dashboard_and_alerts_name_only_metrics_that_exist() {
    for file in ["docs/grafana/kagzi.json", "docs/alerts.yml"] {
        let named = named_in(&repository(file));
        let unknown: Vec<_> = named.iter().filter(|name| !exists(name)).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which no server has");
        assert!(named.len() >= 8, "{file} names only {named:?}");
    }
}

#[test]
fn the_dashboard_is_json_and_every_panel_has_a_query() {
    let dashboard: serde_json::Value = serde_json::from_str(&repository("docs/grafana/kagzi.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let queries = panel["targets"].as_array().unwrap();
        assert!(queries.iter().all(|query| query["expr"].is_string()), "{}", panel["title"]);
        assert!(!queries.is_empty(), "{}", panel["title"]);
    }
}

/// Words that look like metrics.
fn named_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("kagzi_")).map(str::to_owned).collect()
}

fn exists(name: &str) -> bool {
    ALL.iter().any(|metric| {
        let parts = ["_bucket", "_sum", "_count"];
        let part = parts.iter().any(|part| name.strip_suffix(part) == Some(metric.name));
        name == metric.name || (metric.kind == catalogue::Kind::Histogram && part)
    })
}
