//! A server that has no file descriptors left. The limit holds for the whole process, so this test has one of
//! its own.

use std::{net::SocketAddr, time::Duration};

use kagzi_server::{
    Options, Server, StoreUrl,
    config::{Loaded, Sources},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::oneshot,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);

/// Asks over a connection that stays open, because no other could be opened.
async fn accept_errors(scraper: &mut TcpStream) -> f64 {
    scraper.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut page = Vec::new();
    loop {
        let mut piece = [0; 64 * 1024];
        let count = scraper.read(&mut piece).await.unwrap();
        assert!(count > 0, "the scraper's connection is open");
        page.extend(&piece[..count]);
        let text = String::from_utf8_lossy(&page);
        if let Some((_, rest)) = text.split_once("\nkagzi_accept_errors_total ")
            && let Some((value, _)) = rest.split_once('\n')
            && text.contains("\nkagzi_clock_skew_seconds ")
        {
            return value.parse().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_the_server_waits_instead_of_spinning_and_recovers() {
    let config = Loaded::load(Sources::default()).unwrap().config;
    let options =
        Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config.options(StoreUrl::Memory) };
    let (told, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve(options, |address| told.send(address).unwrap(), stop.clone()));
    let address = ready.await.unwrap();
    let mut scraper = TcpStream::connect(address).await.unwrap();
    assert_eq!(accept_errors(&mut scraper).await, 0.0);
    // The clients have theirs already; the server will need one for each.
    let clients: Vec<TcpSocket> = (0..8).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), maximum: before.maximum }).unwrap();

    let mut connected = Vec::new();
    for client in clients {
        connected.push(client.connect(address).await.expect("the system's queue takes it"));
    }
    let first = timeout(PATIENCE, async { while accept_errors(&mut scraper).await == 0.0 {} });
    first.await.expect("the limit is noticed");
    let (since, errors) = (Instant::now(), accept_errors(&mut scraper).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let per_second = (accept_errors(&mut scraper).await - errors) / since.elapsed().as_secs_f64();
    setrlimit(Resource::Nofile, before).unwrap();

    // A loop that spins makes hundreds of thousands.
    assert!(per_second < 100.0, "{per_second} failed accepts a second");
    let mut client = connected.pop().unwrap();
    client.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, client.read_to_string(&mut answer)).await.expect("it recovers").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(connected);
    stop.cancel();
    serving.await.unwrap().unwrap();
}
