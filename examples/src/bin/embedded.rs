//! The whole engine in this process: a file, no port. The run outlives the engine that started it.

use std::time::Duration;

use kagzi::{Embedded, WorkflowContext};

async fn tea(ctx: WorkflowContext, leaves: String) -> anyhow::Result<String> {
    let pot: String = ctx
        .run("boil", async move {
            println!("boiling water for {leaves}");
            Ok(format!("a pot of {leaves}"))
        })
        .await?;
    ctx.sleep(Duration::from_secs(1)).await?;
    Ok(pot)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tea.db");

    let kagzi = Embedded::open(&file).await?;
    let run_id = kagzi.client().workflow("tea", "kitchen", "sencha").await?.run_id().to_owned();
    println!("started, and the engine stops");
    kagzi.close().await;

    let kagzi = Embedded::open(&file).await?;
    let mut worker = kagzi.worker("kitchen").build().await?;
    worker.register("tea", tea);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());
    println!("{}", kagzi.client().handle(run_id).result::<String>().await?);

    stop.cancel();
    working.await??;
    kagzi.close().await;
    Ok(())
}
