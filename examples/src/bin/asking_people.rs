//! A run asks two people to approve something, and a person for data: it waits in their inboxes, without a
//! worker. A question that nobody answers is escalated.

use std::time::Duration;

use kagzi::inbox::Contact;
use kagzi::{Client, Worker, WorkflowContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Account {
    iban: String,
}

async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    let hour = Duration::from_secs(3600);
    let question = ctx.approval("refund").title(format!("Refund {cents} cents?")).of(&cents);
    let question = question.to("group:finance").quorum(2).timeout(hour * 24).escalate(hour * 4, "cfo");
    let approval = question.await?;
    approval.checked(&cents)?;
    let account = ctx.input::<Account>("account").to("ada").await?;
    let to = account.data.iban;
    ctx.run("pay", async move { Ok(format!("{cents} cents paid to {to}")) }).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "finance").build().await?;
    worker.register("refund-asked", refund);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let (ada, bob) = (client.inbox("ada"), client.inbox("bob"));
    ada.put_contact(Contact::new("ada").member_of("finance")).await?;
    ada.put_contact(Contact::new("bob").member_of("finance")).await?;
    let run = client.workflow("refund-asked", "finance", 1_250).await?;

    let question = asked(&ada, run.run_id()).await?;
    println!("ada is asked: {}", question.title);
    println!("decided with ada: {}", ada.approve(&question.id, "fine").await?.decided);
    println!("decided with bob: {}", bob.approve(&question.id, "").await?.decided);
    let account = asked(&ada, run.run_id()).await?;
    println!("refused: {}", ada.give(&account.id, &7, "").await.is_err());
    ada.give(&account.id, &Account { iban: "DE02".into() }, "").await?;
    println!("{}", run.result::<String>().await?);

    stop.cancel();
    Ok(working.await??)
}

async fn asked(inbox: &kagzi::inbox::Inbox, run: &str) -> anyhow::Result<kagzi::inbox::Question> {
    loop {
        if let Some(question) = inbox.questions().run(run).all().await?.into_iter().next() {
            return Ok(question);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
