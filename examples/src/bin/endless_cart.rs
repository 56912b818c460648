//! A cart that lives for as long as its owner likes: it takes items as signals, and continues in place so that
//! its history never grows. Whoever waits for it gets the bill when somebody says "check out".

use kagzi::{Client, Worker, WorkflowContext};
use serde::{Deserialize, Serialize};

/// What goes from one generation to the next.
#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
    cents: u64,
}

#[derive(Serialize, Deserialize)]
enum Wish {
    Add { item: String, cents: u64 },
    CheckOut,
}

async fn cart(ctx: WorkflowContext, mut cart: Cart) -> anyhow::Result<String> {
    // A real cart asks ctx.should_continue(), which says yes after some thousand wishes.
    for _ in 0..2 {
        match ctx.signal("wish").await? {
            Wish::Add { item, cents } => {
                cart.cents += ctx.run("price", async move { Ok(cents) }).await?;
                cart.items.push(item);
            }
            Wish::CheckOut => {
                let (cents, generation) = (cart.cents, ctx.generation());
                return Ok(format!("{}: {cents} cents, generation {generation}", cart.items.join(", ")));
            }
        }
    }
    // The same run begins anew with this input. Wishes that came meanwhile lie there.
    ctx.continue_as_new(&cart)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "carts").build().await?;
    worker.register("cart", cart);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("cart", "carts", Cart::default()).await?;
    let bill = tokio::spawn({
        let run = run.clone();
        async move { run.result::<String>().await }
    });
    for (item, cents) in [("tea", 450), ("milk", 120), ("cups", 990), ("honey", 600), ("spoons", 300)] {
        run.signal("wish", &Wish::Add { item: item.into(), cents }).id(item).await?;
        // Somebody presses the button twice, perhaps in a later generation.
        run.signal("wish", &Wish::Add { item: item.into(), cents }).id(item).await?;
    }
    run.signal("wish", &Wish::CheckOut).await?;

    println!("{}", bill.await??);
    println!("the same run: {}", run.describe().await?.run_id == run.run_id());

    stop.cancel();
    Ok(working.await??)
}
