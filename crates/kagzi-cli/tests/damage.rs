//! A damaged database under the real server, and hostile text on its way to a terminal.

mod stage;

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use stage::{DEADLINE, Server, complaint, json, kagzi, printed, refused};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a probe is answered.
async fn get(server: &Server, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(&server.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Overwrites the second page, the root of `runs`, with noise.
fn overwrite_with_noise(file: &Path) {
    let mut file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(8192)).unwrap();
    let noise: Vec<u8> = (0..8192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    file.write_all(&noise).unwrap();
}

#[tokio::test]
async fn a_server_on_a_damaged_file_says_so_everywhere_and_takes_no_more_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    json(&server, &["run", "start", "order"]).await;
    server.stop().await;
    overwrite_with_noise(&file);

    let server = Server::start(&file).await;

    let advice = |text: &str| text.contains("kagzi verify") && text.contains("kagzi restore");
    let ready = get(&server, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503") && advice(&ready), "{ready}");
    let (code, said) = refused(&server, &["run", "start", "order"]).await;
    assert!(code == Some(1) && advice(&said), "{code:?} {said}");
    let (code, said) = refused(&server, &["run", "list"]).await;
    assert!(code == Some(1) && advice(&said), "nothing is listed from what is left: {code:?} {said}");
    let doctor = kagzi(&["--address", &server.address, "doctor"]).await;
    let diagnosis = String::from_utf8_lossy(&doctor.stdout).replace('\n', " ");
    assert_eq!(doctor.status.code(), Some(1), "{diagnosis}");
    assert!(diagnosis.contains("damaged"), "{diagnosis}");
    assert!(get(&server, "/metrics").await.contains("\nkagzi_database_damaged 1\n"));
    server.kill().await;
}

#[tokio::test]
async fn a_log_whose_header_is_damaged_does_not_become_an_empty_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    for _ in 0..10 {
        json(&server, &["run", "start", "order"]).await;
    }
    // Nothing has left the log yet, not even the tables.
    server.kill().await;
    let log = folder.path().join("kagzi.db-wal");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[..32].fill(0xff);
    std::fs::write(&log, &bytes).unwrap();

    let store = format!("sqlite:{}", file.display());
    let started =
        kagzi(&["serve", "--listen", "127.0.0.1:0", "--until-stdin-closes", "--store", &store]).await;

    let said = complaint(&started);
    assert!(!started.status.success(), "{said}");
    assert!(said.contains("header of the write-ahead log is damaged"), "{said}");
    assert!(said.contains("there was a database in it before"), "{said}");
    assert_eq!(std::fs::read(folder.path().join("kagzi.db-wal.damaged")).unwrap(), bytes, "it is kept");
}

#[tokio::test]
async fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let nasty = "\u{1b}[2J\u{1b}]0;PWNED\u{7}\u{9b}2J\u{202e}gnp";
    json(&server, &["ns", "create", "shop", "--description", nasty]).await;
    let started = json(&server, &["run", "start", "order"]).await;
    let run = started["run_id"].as_str().unwrap();
    json(&server, &["run", "cancel", run, "--reason", nasty]).await;

    let address = ["--address", &server.address];
    for args in [&["ns", "list"][..], &["run", "show", run], &["run", "history", run], &["run", "why", run]] {
        for format in ["table", "json"] {
            let said = printed(&kagzi(&[&address[..], &["-o", format], args].concat()).await);
            let unsafe_text = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!said.contains(unsafe_text), "{args:?} {format}: {said:?}");
        }
    }
    let listed = json(&server, &["ns", "list"]).await;
    let descriptions: Vec<_> =
        listed["namespaces"].as_array().unwrap().iter().map(|found| found["description"].clone()).collect();
    assert!(descriptions.contains(&nasty.into()), "programs read what was written: {descriptions:?}");
    server.kill().await;
}

#[tokio::test]
async fn a_command_says_why_it_could_not_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = listener.local_addr().unwrap().to_string();
    drop(listener);

    let nobody = kagzi(&["--address", &free, "run", "list"]).await;
    let list = kagzi(&["--address", "a:1,b:2", "run", "list"]).await;

    assert_eq!(nobody.status.code(), Some(7));
    assert!(complaint(&nobody).contains("refused"), "{}", complaint(&nobody));
    assert_eq!(list.status.code(), Some(2));
    assert!(complaint(&list).contains("one address"), "{}", complaint(&list));
}

#[tokio::test]
async fn waiting_for_longer_than_there_is_time_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let started = json(&server, &["run", "start", "order"]).await;
    let run = started["run_id"].as_str().unwrap().to_owned();
    let address = server.address.clone();

    let waiting = tokio::spawn(async move {
        let eternity = ["run", "wait", &run, "--timeout", "9223372036854775807s"];
        kagzi(&[&["--address", &address], &eternity[..]].concat()).await
    });
    let run = started["run_id"].as_str().unwrap();
    json(&server, &["run", "cancel", run]).await;

    let waited = tokio::time::timeout(DEADLINE, waiting).await.unwrap().unwrap();
    assert!(complaint(&waited).contains("ended CANCELLED"), "{waited:?}");
    server.kill().await;
}
