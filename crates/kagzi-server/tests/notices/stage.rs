//! A server with a mail server and a web server on loopback, a worker, and somebody who asks.

use std::{net::SocketAddr, path::Path, time::Duration};

use kagzi::{Client, Worker, WorkflowContext};
use kagzi_notices::fixture::{MailServer, Security, WebReceiver};
use kagzi_proto::v1::{self, intervention_service_client::InterventionServiceClient};
use kagzi_server::{
    NotifySettings, Options, Server, StoreUrl,
    config::{Loaded, Sources},
};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

pub const SECRET: &str = "a secret that both know";
/// Everything here takes milliseconds on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    pub mail: MailServer,
    pub web: WebReceiver,
    pub client: Client,
    pub inbox: InterventionServiceClient<Channel>,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
    working: JoinHandle<anyhow::Result<()>>,
    store: tempfile::TempDir,
}

/// Asks ada and grace, and says what was decided.
async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<bool> {
    let title = format!("Refund {cents} cents");
    let asked = ctx.approval("approve").title(title).message("a payload").to("ada").to("grace");
    Ok(asked.await?.approved)
}

impl Stage {
    pub async fn new() -> Stage {
        let mail = MailServer::start(Security::Clear, None).await;
        let web = WebReceiver::start(false).await;
        let store = tempfile::tempdir().unwrap();
        let (address, stop, serving) = serve(store.path(), &mail, &web).await;
        let client = Client::connect(&address.to_string()).await.unwrap();
        let mut worker = Worker::builder(address.to_string(), "refunds").build().await.unwrap();
        worker.register("refund", refund);
        let working = tokio::spawn(async move { Ok(worker.run().await?) });
        let inbox = inbox(address).await;
        let stage = Stage { mail, web, client, inbox, address, stop, serving, working, store };
        let webhook = stage.web.url("/grace");
        stage
            .contact(v1::Contact {
                name: "ada".into(),
                email: "ada@example.org".into(),
                ..Default::default()
            })
            .await;
        stage
            .contact(v1::Contact {
                name: "grace".into(),
                email: "grace@example.org".into(),
                webhook,
                ..Default::default()
            })
            .await;
        stage
    }

    /// A client and a worker of another namespace.
    pub async fn another_namespace(&self, namespace: &str) -> (Client, JoinHandle<anyhow::Result<()>>) {
        let address = self.address.to_string();
        let client = Client::builder(&address).namespace(namespace).connect().await.unwrap();
        let worker = Worker::builder(&address, "refunds").namespace(namespace).build();
        let mut worker = worker.await.unwrap();
        worker.register("refund", refund);
        (client, tokio::spawn(async move { Ok(worker.run().await?) }))
    }

    pub async fn contact(&self, contact: v1::Contact) {
        let request = v1::PutContactRequest { contact: Some(contact), ..Default::default() };
        self.inbox.clone().put_contact(request).await.unwrap();
    }

    /// The only open question, once it is asked.
    pub async fn question(&self) -> String {
        let found = self.until("a question is open", async || {
            let request = v1::ListInterventionsRequest::default();
            let listed = self.inbox.clone().list_interventions(request).await.unwrap().into_inner();
            listed.interventions.into_iter().next()
        });
        found.await.intervention_id
    }

    pub async fn approve(&self, question: &str, by: &str) {
        let request = v1::AnswerInterventionRequest {
            intervention_id: question.into(),
            by: by.into(),
            answer_id: format!("{by}-1"),
            answer: Some(v1::answer_intervention_request::Answer::Approved(true)),
            ..Default::default()
        };
        self.inbox.clone().answer_intervention(request).await.unwrap();
    }

    pub async fn notices(&self, question: &str) -> Vec<v1::Notice> {
        let request = v1::GetInterventionRequest { intervention_id: question.into(), ..Default::default() };
        self.inbox.clone().get_intervention(request).await.unwrap().into_inner().notices
    }

    /// Asks again and again until there is something.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "it never happened: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the server and starts it again on the same database.
    pub async fn restart(&mut self) {
        self.stop.cancel();
        let stopped = tokio::time::timeout(Duration::from_secs(20), &mut self.serving).await;
        stopped.expect("a receiver that hangs does not hold a server up").unwrap().unwrap();
        (self.address, self.stop, self.serving) = serve(self.store.path(), &self.mail, &self.web).await;
        self.inbox = inbox(self.address).await;
    }

    pub async fn close(self) {
        self.working.abort();
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

async fn inbox(address: SocketAddr) -> InterventionServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    InterventionServiceClient::new(endpoint.connect().await.unwrap())
}

async fn serve(
    store: &Path,
    mail: &MailServer,
    web: &WebReceiver,
) -> (SocketAddr, CancellationToken, JoinHandle<anyhow::Result<()>>) {
    let config = Loaded::load(Sources::default()).unwrap().config;
    let texts = store.join("texts.json");
    let own =
        r#"{ "open": { "payloads": true, "messages": { "asked": { "subject": "[open] {{title}}" } } } }"#;
    std::fs::write(&texts, own).unwrap();
    let notify = NotifySettings {
        smtp_url: Some(format!("smtp://localhost:{}?tls=none", mail.address.port())),
        from: Some("Kagzi <kagzi@example.com>".into()),
        webhook_url: Some(web.url("/everybody")),
        webhook_secret: Some(SECRET.into()),
        console_url: Some("https://kagzi.example.org".into()),
        texts_file: Some(texts.display().to_string()),
        ..NotifySettings::default()
    };
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        notify,
        ..config.options(StoreUrl::Sqlite(store.join("kagzi.db")))
    };
    let (told, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve(options, |address| told.send(address).unwrap(), stop.clone()));
    (ready.await.unwrap(), stop, serving)
}
