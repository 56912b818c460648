//! Connections that cost something and say nothing, or too many of them.

use std::time::Duration;

use kagzi_proto::v1;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::stage::Stage;

/// Longer than any of these tests should take, and short enough that a hang is told as one.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_connection_that_says_nothing_or_only_half_a_greeting_is_closed() {
    let stage = Stage::with(&[("server.greeting_timeout", "300ms")]).await;

    for said in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n", b"GET /livez HTTP/1.1\r\nHost: loc"] {
        let mut connection = stage.connect().await;
        connection.write_all(said).await.unwrap();
        let mut answer = Vec::new();
        let closed = timeout(PATIENCE, connection.read_to_end(&mut answer)).await;
        // An end or a reset: both mean that the server holds it no longer.
        assert!(closed.is_ok(), "{said:?} is still open");
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    }

    let page = stage.metrics().await;
    assert!(page.contains("kagzi_connections_refused_total{reason=\"silent\"} 4\n"), "{page}");
    stage.close().await;
}

#[tokio::test]
async fn a_connection_that_has_greeted_may_be_idle() {
    let stage = Stage::with(&[("server.greeting_timeout", "200ms")]).await;
    let mut admin = stage.admin().await;
    admin.get_server_info(v1::GetServerInfoRequest::default()).await.unwrap();
    let mut silent = stage.connect().await;

    // When a silent one was closed, an idle one of the same age was not.
    timeout(PATIENCE, silent.read_to_end(&mut Vec::new())).await.unwrap().unwrap_or_default();
    let before = stage.metric("kagzi_connections").await;
    admin.get_server_info(v1::GetServerInfoRequest::default()).await.unwrap();

    assert_eq!(stage.metric("kagzi_connections").await, before, "the call used the old connection");
    stage.close().await;
}

#[tokio::test]
async fn beyond_the_limit_new_connections_are_closed_and_old_ones_go_on() {
    let stage = Stage::with(&[("server.connections_max", "2")]).await;
    let mut admin = stage.admin().await;
    let second = stage.connect().await;

    let mut third = stage.connect().await;
    let closed = timeout(PATIENCE, third.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "the third one is open");
    admin.get_server_info(v1::GetServerInfoRequest::default()).await.unwrap();

    drop(second);
    let answered = async {
        loop {
            let (status, _) =
                stage.try_say(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
            if status == 200 {
                return;
            }
        }
    };
    timeout(PATIENCE, answered).await.expect("a place that became free is given again");
    stage.close().await;
}
