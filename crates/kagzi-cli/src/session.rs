use crate::address::Address;
use crate::args::Global;
use crate::exit::Trouble;
use crate::output::Format;
use crate::reach;
use kagzi::Client;
use kagzi_proto::v1::admin_service_client::AdminServiceClient;
use kagzi_proto::v1::schedule_service_client::ScheduleServiceClient;
use kagzi_proto::v1::worker_service_client::WorkerServiceClient;
use kagzi_proto::v1::workflow_service_client::WorkflowServiceClient;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A page of history carries payloads; tonic's 4 MiB would refuse a page that the server may well send.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub type Workflows = WorkflowServiceClient<Channel>;
pub type Workers = WorkerServiceClient<Channel>;
pub type Schedules = ScheduleServiceClient<Channel>;
pub type Admin = AdminServiceClient<Channel>;

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

    pub async fn workflows(&self) -> anyhow::Result<Workflows> {
        Ok(workflows_over(connect(&self.address).await?))
    }

    pub async fn schedules(&self) -> anyhow::Result<Schedules> {
        let channel = connect(&self.address).await?;
        Ok(Schedules::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
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

    pub async fn workers(&self) -> anyhow::Result<Workers> {
        Ok(workers_over(connect(&self.address).await?))
    }
}

/// Who asks, for notes that others read; empty when the machine does not say.
fn user() -> String {
    std::env::var("USER").unwrap_or_default()
}

pub fn workflows_over(channel: Channel) -> Workflows {
    Workflows::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

pub fn workers_over(channel: Channel) -> Workers {
    Workers::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

pub async fn connect(address: &Address) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(address.uri())
        .map_err(|error| Trouble::usage(format!("`{address}` is not an address: {error}")))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    let unreachable = |why: String| Trouble::Unreachable { address: address.clone(), why };
    reach::check(address, CONNECT_TIMEOUT).await.map_err(unreachable)?;
    endpoint.connect().await.map_err(|error| unreachable(error.to_string()).into())
}
