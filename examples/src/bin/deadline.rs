//! A run that must end by a time: whatever it does then, it is stopped and TIMED_OUT.

use std::time::{Duration, SystemTime};

use kagzi::{Client, Error, Worker, WorkflowContext};

async fn long_process(ctx: WorkflowContext, name: String) -> anyhow::Result<()> {
    println!("{name} begins");
    ctx.sleep(Duration::from_secs(3600)).await?;
    println!("never printed");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "deadlines").build().await?;
    worker.register("LongProcess", long_process);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let by_length = client
        .workflow("LongProcess", "deadlines", "by length")
        .execution_timeout(Duration::from_secs(1))
        .await?;
    report(by_length.result().await);

    let by_time = client
        .workflow("LongProcess", "deadlines", "by time")
        .deadline(SystemTime::now() + Duration::from_secs(1))
        .await?;
    report(by_time.result().await);

    stop.cancel();
    Ok(working.await??)
}

fn report(result: Result<(), Error>) {
    match result {
        Ok(()) => println!("in time"),
        Err(Error::RunFailed(failed)) => println!("{:?}: {}", failed.status, failed.message),
        Err(error) => println!("{error}"),
    }
}
