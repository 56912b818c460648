//! A server's own counters, from its page of metrics.

use anyhow::Context;
use kagzi_shell::address::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Runs given to workers.
    pub leases: f64,
    /// Runs that memory did not have, and the lines of their histories.
    pub runs_loaded: f64,
    pub events_loaded: f64,
    /// Bytes of answers: what a worker is sent with a run.
    pub sent_bytes: f64,
}

impl Counters {
    pub async fn read(server: &Address) -> anyhow::Result<Counters> {
        let mut stream = TcpStream::connect(server.to_string()).await.context("the server's metrics")?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await.context("the server's metrics are no text")?;
        Counters::parse(&page)
    }

    fn parse(page: &str) -> anyhow::Result<Counters> {
        let get = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse().ok()).with_context(|| format!("no metric {name}"))
        };
        Ok(Counters {
            leases: get("kagzi_leases_total")?,
            runs_loaded: get("kagzi_runs_loaded_total")?,
            events_loaded: get("kagzi_events_loaded_total")?,
            sent_bytes: get("kagzi_rpc_sent_bytes_total")?,
        })
    }

    /// What happened since.
    pub fn since(self, before: Counters) -> Counters {
        Counters {
            leases: self.leases - before.leases,
            runs_loaded: self.runs_loaded - before.runs_loaded,
            events_loaded: self.events_loaded - before.events_loaded,
            sent_bytes: self.sent_bytes - before.sent_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name_and_a_missing_one_is_an_error() {
        let page = "kagzi_leases_total 12\nkagzi_runs_loaded_total 3\nkagzi_events_loaded_total 40\n\
                    kagzi_rpc_sent_bytes_total 5000\n";

        let read = Counters::parse(page).unwrap();

        assert_eq!((read.leases, read.events_loaded), (12.0, 40.0));
        assert!(Counters::parse("kagzi_leases_total 12\n").is_err());
    }
}
