use super::grpc_echo;
use crate::connection::{self, Admin, Workers};
use crate::percentile::round;
use anyhow::{Context, ensure};
use kagzi_proto::v1::{
    HealthCheckRequest, LeaseRef, Payload, Report, ServerMessage, StepRecorded, StepRef, WorkerMessage,
    report, server_message, worker_message,
};
use kagzi_shell::address::Address;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const IN_FLIGHT: usize = 64;

/// As many as the benchmark's own client opens.
const CONNECTIONS: usize = 4;

pub struct Rates {
    pub unary_per_s: f64,
    pub stream_msgs_per_s: f64,
}

/// What gRPC does over loopback when nobody does anything with the messages.
pub async fn rates(span: Duration) -> anyhow::Result<Rates> {
    let incoming = grpc_echo::bind().context("could not listen on loopback")?;
    let address = Address::from(incoming.local_addr()?);
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(grpc_echo::serve(incoming, shutdown.clone()));

    let measured = async {
        let unary_per_s = unary_per_s(&address, span).await?;
        let stream_msgs_per_s = stream_msgs_per_s(&address, span).await?;
        anyhow::Ok(Rates { unary_per_s, stream_msgs_per_s })
    }
    .await;
    shutdown.cancel();
    server.await.context("the echo server panicked")?.context("the echo server failed")?;
    measured
}

async fn unary_per_s(address: &Address, span: Duration) -> anyhow::Result<f64> {
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(Admin::new(connection::connect(address).await?));
    }
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for number in 0..IN_FLIGHT {
        callers.spawn(call_until(connections[number % CONNECTIONS].clone(), began + span));
    }
    let mut calls = 0;
    while let Some(caller) = callers.join_next().await {
        calls += caller.context("a caller panicked")??;
    }
    Ok(round(calls as f64 / began.elapsed().as_secs_f64(), 1))
}

async fn call_until(mut admin: Admin, deadline: Instant) -> Result<u64, tonic::Status> {
    let mut calls = 0;
    while Instant::now() < deadline {
        admin.health_check(HealthCheckRequest {}).await?;
        calls += 1;
    }
    Ok(calls)
}

async fn stream_msgs_per_s(address: &Address, span: Duration) -> anyhow::Result<f64> {
    let mut workers = Workers::new(connection::connect(address).await?);
    let stop = Arc::new(AtomicBool::new(false));
    let reports = (1u64..).map(report_of).take_while({
        let stop = stop.clone();
        move |_| !stop.load(Ordering::Relaxed)
    });
    // HTTP/2 flow control holds the endless iterator back: it is only asked when there is room to send.
    let mut acks = workers.work(tokio_stream::iter(reports)).await?.into_inner();

    let began = Instant::now();
    let mut received = 0u64;
    while let Some(ack) = acks.message().await? {
        received += 1;
        ensure!(seq_of(&ack) == Some(received), "the echo lost or reordered a message");
        if began.elapsed() >= span {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    Ok(round(received as f64 / seconds, 1))
}

/// A step's result as a worker reports it, with about 100 bytes of payload.
fn report_of(seq: u64) -> WorkerMessage {
    let recorded = StepRecorded {
        step: Some(StepRef { path: "charge".into(), position: 1 }),
        result: Some(Payload {
            data: bytes::Bytes::from_static(&[0x6b; 100]),
            content_type: "application/json".into(),
        }),
        attempt: 1,
        elapsed_ms: 1,
    };
    let report = Report {
        seq,
        lease: Some(LeaseRef { run_id: "0199f3c2-7d1a-7c4e-9b1f-5a2e8d7c6b3a".into(), epoch: 1 }),
        body: Some(report::Body::StepRecorded(recorded)),
    };
    WorkerMessage { message: Some(worker_message::Message::Report(report)) }
}

fn seq_of(message: &ServerMessage) -> Option<u64> {
    match &message.message {
        Some(server_message::Message::Ack(ack)) => ack.committed.first().copied(),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn calls_and_stream_messages_come_back() {
        let rates = rates(Duration::from_millis(20)).await.unwrap();

        assert!(rates.unary_per_s > 0.0 && rates.stream_msgs_per_s > 0.0);
    }
}
