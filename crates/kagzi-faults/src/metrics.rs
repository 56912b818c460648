//! Asking a server over plain HTTP, as Prometheus and probes do.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The value of a metric without labels.
pub async fn metric(server: SocketAddr, name: &str) -> f64 {
    let (_, page) = get(server, "/metrics").await;
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no metric {name} in\n{page}"))
}

/// The status and the text of a page.
pub async fn get(server: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server answers");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("HTTP has a status");
    let (_, page) = answer.split_once("\r\n\r\n").expect("HTTP has a body");
    (status, page.to_owned())
}
