//! The server's counters, read as Prometheus would.

use crate::address::Address;
use crate::exit::Trouble;
use anyhow::Context;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Values by name, labels included: `kagzi_runs_finished_total{outcome="completed"}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub async fn read(address: &Address) -> anyhow::Result<Metrics> {
        let unreachable =
            |error: std::io::Error| Trouble::Unreachable { address: address.clone(), why: error.to_string() };
        let mut stream = TcpStream::connect(address.to_string()).await.map_err(unreachable)?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await.context("the server's metrics are no text")?;
        Ok(Metrics::parse(&page))
    }

    fn parse(page: &str) -> Metrics {
        let line = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            (name.starts_with("kagzi_")).then(|| Some((name.to_owned(), value.trim().parse().ok()?)))?
        };
        Metrics(page.lines().filter_map(line).collect())
    }

    /// None when the server has no metric of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// All of one name, by the value of their label.
    pub fn by_label(&self, name: &str) -> BTreeMap<String, f64> {
        let labelled = |(key, value): (&String, &f64)| {
            let label = key.strip_prefix(name)?.strip_prefix('{')?.strip_suffix("\"}")?.split_once("=\"")?.1;
            Some((label.to_owned(), *value))
        };
        self.0.iter().filter_map(labelled).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const PAGE: &str = "HTTP/1.1 200 OK\r\n\r\n# HELP kagzi_commits_total Transactions\n\
        kagzi_commits_total 12\nkagzi_commit_seconds_sum 0.5\nkagzi_commands_total 120\n\
        kagzi_runs_finished_total{outcome=\"completed\"} 7\nkagzi_runs_finished_total{outcome=\"failed\"} \
        1\n";

    pub fn sample() -> Metrics {
        Metrics::parse(PAGE)
    }

    /// Ten commits of 4 ms, a hundred commands and twenty runs later.
    pub fn later() -> Metrics {
        let page = PAGE.replace("total 12\n", "total 22\n").replace("sum 0.5", "sum 0.54");
        let page = page.replace("total 120", "total 220").replace("\"} 7", "\"} 27");
        Metrics::parse(&page)
    }

    #[test]
    fn values_are_read_by_name_and_by_label() {
        let metrics = sample();

        assert_eq!(metrics.get("kagzi_commits_total"), Some(12.0));
        assert_eq!(metrics.get("kagzi_unknown"), None);
        let outcomes = metrics.by_label("kagzi_runs_finished_total");
        assert_eq!(outcomes, BTreeMap::from([("completed".to_owned(), 7.0), ("failed".to_owned(), 1.0)]));
    }
}
