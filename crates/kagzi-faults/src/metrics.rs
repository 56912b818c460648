//! Reading `/metrics` as Prometheus would.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The value of a metric without labels.
pub async fn metric(server: SocketAddr, name: &str) -> f64 {
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("the server answers");
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no metric {name} in\n{page}"))
}
