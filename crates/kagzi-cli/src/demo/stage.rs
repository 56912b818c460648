use crate::address::Address;
use crate::child::Child;
use anyhow::Context;
use kagzi_server::StoreUrl;
use std::ffi::OsString;
use std::path::Path;
use tempfile::TempDir;

/// The scratch directory and the processes of one tour.
pub struct Stage {
    workers: Vec<Child>,
    server: Option<Child>,
    /// Last, because fields are dropped in order: the processes go before the files they write.
    dir: TempDir,
}

impl Stage {
    pub fn open() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("kagzi-demo-").tempdir();
        let dir = dir.context("could not create a scratch directory")?;
        Ok(Stage { dir, server: None, workers: Vec::new() })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub async fn start_server(&mut self) -> anyhow::Result<Address> {
        let store = StoreUrl::Sqlite(self.dir().join("demo.db"));
        let (server, address) = Child::server(&store.to_url(), self.dir()).await?;
        self.server = Some(server);
        Ok(address)
    }

    /// Starts one more worker and returns it, to be watched or killed.
    pub fn start_worker(&mut self, address: &Address) -> anyhow::Result<&mut Child> {
        let args: [OsString; 5] = [
            "demo-worker".into(),
            "--address".into(),
            address.to_string().into(),
            "--dir".into(),
            self.dir().into(),
        ];
        let worker = Child::spawn("worker", args, self.dir())?;
        self.workers.push(worker);
        Ok(self.workers.last_mut().expect("it was just pushed"))
    }

    pub async fn close(mut self) -> anyhow::Result<()> {
        for child in self.workers.iter_mut().chain(self.server.as_mut()) {
            child.kill().await?;
        }
        self.dir.close().context("could not remove the scratch directory")
    }
}
