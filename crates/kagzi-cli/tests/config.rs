//! `kagzi config` and the refusals of `kagzi serve`, by the real program.

use std::process::{Command, Output};

/// The program, in a directory of its own and with no variables but these.
fn kagzi(directory: &tempfile::TempDir, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kagzi"));
    command.current_dir(directory.path()).env_clear().envs(variables.iter().copied()).args(args);
    command.output().unwrap()
}

fn directory(file: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("kagzi.toml"), file).unwrap();
    directory
}

#[test]
fn show_tells_the_effective_values_and_where_they_come_from() {
    let here = directory("[worker]\nlease = \"45s\"\n\n[payload]\nmax_size_bytes = 3_000_000\n");
    let variables = [
        ("KAGZI__PAYLOAD__MAX_SIZE_BYTES", "4000000"),
        ("KAGZI_STORE", "postgres://me:hunter2@db.example/kagzi"),
    ];
    let shown =
        kagzi(&here, &variables, &["config", "show", "--set", "worker.stale_after=20s", "--output", "json"]);

    assert!(shown.status.success(), "{shown:?}");
    let values: Vec<serde_json::Value> = serde_json::from_slice(&shown.stdout).unwrap();
    let of = |key: &str| {
        let value = values.iter().find(|value| value["key"] == key).unwrap();
        (value["value"].clone(), value["from"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("worker.lease"), ("45s".into(), "kagzi.toml:2".into()));
    assert_eq!(of("payload.max_size_bytes"), (4_000_000.into(), "KAGZI__PAYLOAD__MAX_SIZE_BYTES".into()));
    assert_eq!(of("worker.stale_after"), ("20s".into(), "--set".into()));
    assert_eq!(of("worker.heartbeat_interval"), ("3s".into(), "default".into()));
    assert_eq!(of("store.url"), ("postgres://me:***@db.example/kagzi".into(), "KAGZI_STORE".into()));
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("hunter2"));
}

#[test]
fn the_example_can_be_used_as_a_file() {
    let example = kagzi(&directory(""), &[], &["config", "example"]);
    let here = directory(&String::from_utf8(example.stdout).unwrap());
    let shown = kagzi(&here, &[], &["config", "show"]);

    assert!(shown.status.success(), "{shown:?}");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("worker.heartbeat_interval"));
}

#[test]
fn serve_refuses_a_wrong_configuration_before_it_opens_anything() {
    let here = directory("[worker]\nhartbeat_interval = \"3s\"\n");
    let store = ["serve", "--store", "sqlite:kagzi.db", "--listen", "127.0.0.1:0"];
    let refused = kagzi(&here, &[("KAGZI__STORE__READERS", "many")], &store);

    let words = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("kagzi.toml:2: worker.hartbeat_interval: there is no such key; did you mean"));
    assert!(words.contains("KAGZI__STORE__READERS: store.readers: expected a whole number, got 'many'"));
    assert!(!here.path().join("kagzi.db").exists());
}

#[test]
fn serve_without_a_store_says_how_to_name_one() {
    let refused = kagzi(&directory(""), &[], &["serve"]);

    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("KAGZI__STORE__URL"));
}
