//! `kagzi schedule …` against a real server, by the real program.

mod stage;

use stage::{Server, json, refused};

#[tokio::test]
async fn a_schedule_is_made_shown_held_triggered_backfilled_changed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let schedule = async |args: &[&str]| json(&server, &[&["schedule"], args].concat()).await;

    let nightly = ["nightly", "--type", "report", "--queue", "reports", "--cron", "0 2 * * *"];
    let more =
        ["--tz", "Europe/Berlin", "--overlap", "skip", "--input", "{\"a\":1}", "--label", "tenant=acme"];
    let made = schedule(&[&["create"], &nightly[..], &more[..]].concat()).await;
    let next = schedule(&["next", "nightly", "-n", "3"]).await;
    let described = schedule(&["next", "--cron", "0 2 * * *", "--tz", "Europe/Berlin", "-n", "3"]).await;
    let paused = schedule(&["pause", "nightly", "--note", "holidays"]).await;
    let first = schedule(&["trigger", "nightly", "--trigger-id", "by-hand"]).await;
    let again = schedule(&["trigger", "nightly", "--trigger-id", "by-hand"]).await;
    let runs = schedule(&["runs", "nightly"]).await;
    let resumed = schedule(&["resume", "nightly"]).await;
    let changed = schedule(&["update", "nightly", "--every", "1h"]).await;
    let filled =
        schedule(&["backfill", "nightly", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-01T03:00:00Z"])
            .await;

    assert_eq!((&made["words"], &made["overlap"]), (&next["words"], &"skip".into()), "{made}");
    assert_eq!(next["times"].as_array().unwrap().len(), 3);
    assert_eq!((&next["times"], &next["time_zone"]), (&described["times"], &"Europe/Berlin".into()));
    assert_eq!((&paused["paused"], &paused["note"]), (&true.into(), &"holidays".into()), "{paused}");
    assert_eq!((&first["already_exists"], &again["already_exists"]), (&false.into(), &true.into()));
    assert_eq!(runs["runs"][0]["run_id"], first["run_id"], "{runs}");
    assert_eq!(resumed["paused"], false);
    assert_ne!(changed["words"], made["words"]);
    assert_eq!(filled["times"], 3, "{filled}");
    schedule(&["delete", "nightly"]).await;
    let (code, said) = refused(&server, &["schedule", "show", "nightly"]).await;
    assert_eq!((code, said.contains("schedule list")), (Some(3), true), "{said}");
    let (code, said) =
        refused(&server, &["schedule", "create", "bad", "--type", "report", "--cron", "0 25 * * *"]).await;
    assert_eq!((code, said.contains("spec.cron is \"0 25 * * *\"")), (Some(2), true), "{said}");
    server.kill().await;
}

#[tokio::test]
async fn schedules_are_listed_by_filter_and_in_pages_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    for (id, kind) in [("a", "report"), ("b", "refund"), ("c", "report")] {
        json(&server, &["schedule", "create", id, "--type", kind, "--every", "1h"]).await;
    }
    json(&server, &["schedule", "pause", "a"]).await;
    let list = async |args: &[&str]| {
        let page = json(&server, &[&["schedule", "list"], args].concat()).await;
        let ids = page["schedules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["schedule_id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page)
    };

    let (first, page) = list(&["--limit", "2"]).await;
    let (second, page) =
        list(&["--limit", "2", "--page-token", page["next_page_token"].as_str().unwrap()]).await;
    let (back, _) = list(&["--limit", "2", "--page-token", page["prev_page_token"].as_str().unwrap()]).await;

    assert_eq!((first.as_slice(), second.as_slice()), (&["c".into(), "b".into()][..], &["a".into()][..]));
    assert_eq!(back, first);
    assert_eq!(list(&["--paused", "true"]).await.0, ["a"]);
    assert_eq!(list(&["--type", "refund"]).await.0, ["b"]);
    server.kill().await;
}
