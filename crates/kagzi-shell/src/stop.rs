use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Waits for Ctrl-C or SIGTERM.
pub async fn requested() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Runs `service` until it ends or a signal asks for an end; a second signal does not wait for a graceful
/// one.
pub async fn on_signal<F>(shutdown: CancellationToken, service: F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut service = std::pin::pin!(service);
    tokio::select! {
        ended = &mut service => return ended,
        heard = requested() => heard?,
    }
    shutdown.cancel();
    tokio::select! {
        ended = service => ended,
        heard = requested() => heard.and_then(|()| anyhow::bail!("stopped before everything was finished")),
    }
}

/// Cancels `shutdown` when stdin closes: a child of `demo` or `bench` must not outlive a parent that was
/// killed.
pub fn when_stdin_closes(shutdown: CancellationToken) {
    // A thread of its own: tokio's stdin would keep the runtime from ending until somebody pressed a key.
    std::thread::Builder::new()
        .name("stdin-watch".into())
        .spawn(move || {
            // Whether stdin ended or broke, nobody is there any more.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            shutdown.cancel();
        })
        .expect("a process that has just started can start a thread");
}
