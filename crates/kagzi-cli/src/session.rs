use crate::address::Address;
use crate::args::Global;
use crate::exit::Trouble;
use crate::output::Format;
use crate::reach;
use kagzi::Client;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Which server, which namespace and how to print: what the global options said.
pub struct Session {
    pub address: Address,
    pub namespace: String,
    pub format: Format,
}

impl Session {
    pub fn new(global: Global) -> Self {
        Session { address: global.address, namespace: global.namespace, format: global.output }
    }

    /// Runs and schedules.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let unreachable = |why: String| Trouble::Unreachable { address: self.address.clone(), why };
        reach::check(&self.address, CONNECT_TIMEOUT).await.map_err(unreachable)?;
        // A person who waits would rather be told than be made to wait.
        let client = Client::builder(self.address.uri()).namespace(&self.namespace).retry_for(Duration::ZERO);
        match client.connect().await {
            Ok(client) => Ok(client),
            Err(kagzi::Error::Unreachable { message, .. }) => Err(unreachable(message).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Namespaces, queues and workers, in the name of whoever asks.
    pub async fn admin(&self) -> anyhow::Result<kagzi::admin::Admin> {
        Ok(self.client().await?.admin().by(user()))
    }
}

/// Who asks, for notes that others read; empty when the machine does not say.
fn user() -> String {
    std::env::var("USER").unwrap_or_default()
}
