//! A database that is further away: everything to and from it is passed on a little later.

use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pieces on their way in one direction of one connection; a sender that is faster waits.
const IN_FLIGHT_MAX: usize = 1024;
const PIECE_LEN_MAX: usize = 64 * 1024;

/// Listens on loopback as long as the process lives, so that scratch databases can be dropped through it
/// after a Ctrl-C. Threads and not tasks: tokio's timer counts whole milliseconds.
pub struct DelayProxy {
    address: SocketAddr,
}

#[derive(Clone)]
enum Target {
    Tcp(String),
    Unix(PathBuf),
}

impl DelayProxy {
    /// In front of the PostgreSQL server that the URL names; `round_trip` is what a question and its answer
    /// take longer, half of it each way.
    pub fn before(url: &str, round_trip: Duration) -> anyhow::Result<DelayProxy> {
        let target = target(url)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("could not listen on loopback")?;
        let address = listener.local_addr()?;
        thread::Builder::new().name("delay-proxy".into()).spawn(move || {
            for connection in listener.incoming() {
                // A connection that cannot be made ends, and whoever asked for it is told by that.
                let _ = connection.map(|client| pass_on(client, &target, round_trip / 2));
            }
        })?;
        Ok(DelayProxy { address })
    }

    /// The URL of the same database through the proxy.
    pub fn url(&self, url: &str) -> String {
        let (address, options) = url.split_once('?').unwrap_or((url, ""));
        let begin = address.find("://").map_or(0, |at| at + 3);
        let path = address[begin..].find('/').map_or(address.len(), |at| begin + at);
        let user = address[begin..path].rfind('@').map_or("", |at| &address[begin..=begin + at]);
        let kept: Vec<&str> = options
            .split('&')
            .filter(|option| !option.is_empty())
            .filter(|option| !["host=", "port=", "hostaddr="].iter().any(|name| option.starts_with(name)))
            .collect();
        let options = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        format!("{}{user}{}{}{options}", &address[..begin], self.address, &address[path..])
    }
}

fn target(url: &str) -> anyhow::Result<Target> {
    let config: tokio_postgres::Config = url.parse().context("the store's URL")?;
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(tokio_postgres::config::Host::Tcp(host)) => Ok(Target::Tcp(format!("{host}:{port}"))),
        Some(tokio_postgres::config::Host::Unix(folder)) => {
            Ok(Target::Unix(folder.join(format!(".s.PGSQL.{port}"))))
        }
        None => bail!("the store's URL names no host"),
    }
}

fn pass_on(client: TcpStream, target: &Target, delay: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let back = client.try_clone()?;
    match target {
        Target::Tcp(address) => {
            let server = TcpStream::connect(address)?;
            server.set_nodelay(true)?;
            let from_server = server.try_clone()?;
            one_way(client, server, delay, |server| _ = server.shutdown(Shutdown::Write));
            one_way(from_server, back, delay, |client| _ = client.shutdown(Shutdown::Both));
        }
        Target::Unix(path) => {
            let server = UnixStream::connect(path)?;
            let from_server = server.try_clone()?;
            one_way(client, server, delay, |server| _ = server.shutdown(Shutdown::Write));
            one_way(from_server, back, delay, |client| _ = client.shutdown(Shutdown::Both));
        }
    }
    Ok(())
}

/// Two threads: one reads and notes when, the other writes when the delay is over. So the delay of one piece
/// does not hold up the next.
fn one_way<R, W>(from: R, to: W, delay: Duration, close: impl FnOnce(&W) + Send + 'static)
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let (send, receive) = sync_channel(IN_FLIGHT_MAX);
    thread::spawn(move || read(from, &send, delay));
    thread::spawn(move || {
        let mut to = to;
        write(&mut to, &receive);
        close(&to);
    });
}

fn read(mut from: impl Read, send: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut piece = vec![0; PIECE_LEN_MAX];
    while let Ok(len @ 1..) = from.read(&mut piece) {
        if send.send((Instant::now() + delay, piece[..len].to_vec())).is_err() {
            return;
        }
    }
}

fn write(to: &mut impl Write, receive: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, piece)) = receive.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_take_longer_by_the_round_trip() {
        let echo = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://me@{}/db", echo.local_addr().unwrap());
        thread::spawn(move || {
            let (mut peer, _) = echo.accept().unwrap();
            let mut byte = [0];
            while peer.read_exact(&mut byte).is_ok() {
                peer.write_all(&byte).unwrap();
            }
        });
        let proxy = DelayProxy::before(&url, Duration::from_millis(20)).unwrap();
        let mut client = TcpStream::connect(proxy.address).unwrap();

        let began = Instant::now();
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();

        assert!(began.elapsed() >= Duration::from_millis(20), "{:?}", began.elapsed());
    }

    #[test]
    fn the_url_names_the_proxy_and_keeps_everything_else() {
        let proxy = DelayProxy::before("postgres://h/db", Duration::ZERO).unwrap();
        let at = proxy.address;

        assert_eq!(proxy.url("postgres://me:pw@host:1/db"), format!("postgres://me:pw@{at}/db"));
        let options = "postgres://me@/db?host=/run/pg&port=1&application_name=x";
        assert_eq!(proxy.url(options), format!("postgres://me@{at}/db?application_name=x"));
    }
}
