//! A cart that is started by its first item, answers requests, shows what is in it, and waits for a payment
//! that somebody else completes with a token.

use std::time::Duration;

use kagzi::{Client, Error, Worker, WorkflowContext};

async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let mut items: Vec<String> = vec![ctx.signal("item").await?];
    let requests = ctx.requests::<String, usize>("add-item");
    while items.len() < 3 {
        let Some(request) = requests.next().await? else { break };
        if items.contains(&request.input) {
            request.reject("it is in the cart already").await?;
            continue;
        }
        items.push(request.input.clone());
        ctx.set_value("items", &items)?;
        request.reply(&items.len()).await?;
    }
    let day = Duration::from_secs(86_400);
    let payment = ctx.promise::<String>("payment").timeout(day).await?;
    ctx.set_value("token", payment.token())?;
    let receipt = payment.await?;
    Ok(format!("{} paid with {receipt}", items.join(", ")))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "shop").build().await?;
    worker.register("ask-cart", cart);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    // Whether the cart is there or not: it is started, or told.
    let run = client.start("ask-cart").queue("shop").id("cart-of-ann").signal("item", "tea").await?;
    let count: usize = run.ask("add-item", "milk").id("click-1").await?;
    println!("{count} items, asked again: {}", run.ask::<_, usize>("add-item", "milk").id("click-1").await?);
    if let Err(Error::Rejected(rejected)) = run.ask::<_, usize>("add-item", "milk").await {
        println!("run said no: {}", rejected.message);
    }
    let count: usize = run.ask("add-item", "cups").await?;
    let items = run.value::<Vec<String>>("items").await?.map(|published| published.value);
    println!("{count} items: {:?}", items.unwrap_or_default());

    // A real cart would have a step that hands the token to the bank.
    let token = loop {
        if let Some(published) = run.value::<String>("token").await? {
            break published.value;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    println!("completed before: {}", client.promise(&token).complete("receipt-7").await?.already);
    println!("{}", run.result::<String>().await?);

    stop.cancel();
    Ok(working.await??)
}
