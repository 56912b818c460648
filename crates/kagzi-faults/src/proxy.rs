//! A TCP proxy between a worker and the server: it can lose the server's answers and cut connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

pub struct Proxy {
    pub address: SocketAddr,
    losing: Arc<AtomicBool>,
    refusing: Arc<AtomicBool>,
    /// Connections end when this number changes.
    generation: watch::Sender<u64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a port of its own and passes everything on to `server`.
    pub async fn to(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let losing = Arc::new(AtomicBool::new(false));
        let (generation, cut) = watch::channel(0);
        let refusing = Arc::new(AtomicBool::new(false));
        let (lossy, closed) = (losing.clone(), refusing.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((worker, _)) = listener.accept().await {
                if closed.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(connect(worker, server, lossy.clone(), cut.clone()));
            }
        });
        Proxy { address, losing, refusing, generation, accepting }
    }

    /// From now on the server's bytes on open connections are thrown away. Such a connection never recovers.
    pub fn lose_answers(&self) {
        self.losing.store(true, Ordering::SeqCst);
    }

    /// Whether new connections are ended at once.
    pub fn refuse(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::SeqCst);
    }

    /// Ends all open connections; those opened afterwards work.
    pub fn cut(&self) {
        self.losing.store(false, Ordering::SeqCst);
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(
    worker: TcpStream,
    server: SocketAddr,
    losing: Arc<AtomicBool>,
    mut cut: watch::Receiver<u64>,
) {
    cut.mark_unchanged();
    let Ok(server) = TcpStream::connect(server).await else { return };
    let nodelay = worker.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    nodelay.expect("loopback sockets take options");
    let (mut from_worker, mut to_worker) = worker.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        // A broken connection is what this proxy is for.
        let _ = tokio::io::copy(&mut from_worker, &mut to_server).await;
    };
    let down = async {
        let mut doomed = false;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(len @ 1..) = from_server.read(&mut buffer).await {
            doomed |= losing.load(Ordering::SeqCst);
            if !doomed && to_worker.write_all(&buffer[..len]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
        _ = cut.changed() => {}
    }
}
