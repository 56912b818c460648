//! A server that does nothing but gRPC: it answers health checks and acknowledges stream messages.

use kagzi_proto::v1::{
    Ack, HealthCheckRequest, HealthCheckResponse, Report, ServerMessage, WorkerMessage, server_message,
    worker_message,
};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// Any free loopback port.
pub fn bind() -> std::io::Result<TcpIncoming> {
    // The builder's own `tcp_nodelay` is ignored for connections that it did not accept itself; without it a
    // call alone on its connection waits 40 ms for a delayed ACK.
    Ok(TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?.with_nodelay(Some(true)))
}

/// Serves until `shutdown`.
pub async fn serve(
    incoming: TcpIncoming,
    shutdown: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    Server::builder()
        .add_service(Echo)
        .add_service(EchoStream)
        .serve_with_incoming_shutdown(incoming, shutdown.cancelled())
        .await
}

/// `AdminService.HealthCheck` alone. Implementing the generated trait would need a stub for each of its other
/// calls.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "kagzi.v1.AdminService";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut grpc = Grpc::new(ProstCodec::default());
        Box::pin(async move { Ok(grpc.unary(Echo, request).await) })
    }
}

impl UnaryService<HealthCheckRequest> for Echo {
    type Response = HealthCheckResponse;
    type Future = std::future::Ready<Result<Response<HealthCheckResponse>, Status>>;

    fn call(&mut self, _: Request<HealthCheckRequest>) -> Self::Future {
        std::future::ready(Ok(Response::new(HealthCheckResponse { ready: true, message: String::new() })))
    }
}

/// `WorkerService.Work` alone. Implementing the generated trait would need a stub for each of its 14 other
/// calls.
#[derive(Clone)]
struct EchoStream;

impl NamedService for EchoStream {
    const NAME: &'static str = "kagzi.v1.WorkerService";
}

impl Service<http::Request<Body>> for EchoStream {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut grpc = Grpc::new(ProstCodec::default());
        Box::pin(async move { Ok(grpc.streaming(EchoStream, request).await) })
    }
}

type Acks = Pin<Box<dyn Stream<Item = Result<ServerMessage, Status>> + Send>>;

impl StreamingService<WorkerMessage> for EchoStream {
    type Response = ServerMessage;
    type ResponseStream = Acks;
    type Future = std::future::Ready<Result<Response<Acks>, Status>>;

    fn call(&mut self, request: Request<Streaming<WorkerMessage>>) -> Self::Future {
        let acks: Acks = Box::pin(request.into_inner().map(|message| message.map(acknowledge)));
        std::future::ready(Ok(Response::new(acks)))
    }
}

fn acknowledge(message: WorkerMessage) -> ServerMessage {
    let committed = match message.message {
        Some(worker_message::Message::Report(Report { seq, .. })) => vec![seq],
        Some(_) | None => Vec::new(),
    };
    ServerMessage { message: Some(server_message::Message::Ack(Ack { committed, answers: Vec::new() })) }
}
