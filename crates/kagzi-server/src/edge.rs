//! The edge: what every connection and every request passes before any service sees it.
//!
//! Nobody has to identify himself yet, so whatever a stranger can cost is bounded here: who may ask
//! ([`admission`]), how many connections there are and how long one may be silent ([`connections`]), how many
//! bytes of half-received messages are held ([`receiving`]), how long a call may take. What passes is counted
//! ([`calls`]).

mod admission;
mod calls;
mod connections;
mod receiving;
mod settings;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use kagzi_proto::Reason;
use tonic::{
    Status,
    body::Body,
    codegen::http::{Request, Response},
};
use tower::{Layer, Service};

use admission::Admission;
use calls::Counted;
use receiving::{Budget, Receiving};

pub use admission::Hosts;
pub use calls::{CallStats, MethodStats};
pub use connections::Connections;
pub use settings::EdgeSettings;

/// How much longer than the longest wait a call may take.
const CALL_MARGIN: Duration = Duration::from_secs(30);

/// The layer in front of all services.
#[derive(Clone)]
pub struct EdgeLayer {
    shared: Arc<Shared>,
}

struct Shared {
    hosts: Hosts,
    budget: Budget,
    stats: Arc<CallStats>,
    call_max: Duration,
}

impl EdgeLayer {
    /// `hosts` decides under which names the server may be asked, `wait_max` is the longest wait that a call
    /// may want.
    pub fn new(
        settings: &EdgeSettings,
        hosts: Hosts,
        stats: Arc<CallStats>,
        wait_max: Duration,
        message_bytes_max: usize,
    ) -> EdgeLayer {
        let budget = Budget::new(settings, message_bytes_max);
        let shared = Shared { hosts, budget, stats, call_max: wait_max + CALL_MARGIN };
        EdgeLayer { shared: Arc::new(shared) }
    }
}

/// Any name: for servers that other machines may reach, and for pipes inside a process.
pub fn any_host() -> Hosts {
    Hosts::Any
}

/// The names of this machine, and those that the operator added.
pub fn loopback_hosts(settings: &EdgeSettings) -> Hosts {
    Hosts::of_loopback(&settings.allowed_hosts)
}

impl<S> Layer<S> for EdgeLayer {
    type Service = Edge<S>;

    fn layer(&self, inner: S) -> Edge<S> {
        Edge { inner, shared: self.shared.clone() }
    }
}

/// A service behind the edge.
#[derive(Clone)]
pub struct Edge<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request<Body>> for Edge<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match admission::admit(&self.shared.hosts, &request) {
            Admission::Probe => Box::pin(self.inner.call(request)),
            Admission::Refused { reason, response } => {
                self.shared.stats.refused(reason);
                Box::pin(std::future::ready(Ok(*response)))
            }
            Admission::Call => {
                let shared = self.shared.clone();
                let mut call = shared.stats.begin(request.uri().path());
                let (receiving, held) = Receiving::of(&shared.budget, call.method(), shared.stats.clone());
                let inner = self.inner.call(request.map(|body| receiving.wrap(body)));
                Box::pin(async move {
                    let response = match tokio::time::timeout(shared.call_max, inner).await {
                        Ok(Ok(response)) => response,
                        Ok(Err(never)) => match never {},
                        Err(_) => too_long(shared.call_max).into_http(),
                    };
                    // A whole request is held until it is answered: until then somebody works with it.
                    held.answered();
                    call.answered(response.headers());
                    Ok(response.map(|body| Body::new(Counted::new(body, call))))
                })
            }
        }
    }
}

fn too_long(max: Duration) -> Status {
    Reason::CallTimeout.status(format!(
        "the call took longer than {} s and was given up; look whether it had an effect before it is sent \
         again",
        max.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use tonic::codegen::http::{Method, Version, header::CONTENT_TYPE};

    use super::*;

    #[tokio::test]
    async fn a_call_that_is_never_answered_is_given_up_after_its_time() {
        let (hosts, stats) = (any_host(), Arc::new(CallStats::default()));
        let budget = Budget::new(&EdgeSettings::default(), 1024 * 1024);
        let call_max = Duration::from_millis(50);
        let layer = EdgeLayer { shared: Arc::new(Shared { hosts, budget, stats, call_max }) };
        let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri("http://localhost/kagzi.v1.WorkflowService/StartWorkflow")
            .header(CONTENT_TYPE, "application/grpc")
            .body(Body::empty())
            .unwrap();
        let began = tokio::time::Instant::now();

        let mut edge = layer.layer(tower::service_fn(never));
        let answer = tokio::time::timeout(Duration::from_secs(20), edge.call(request)).await;
        let response = answer.expect("it is given up").unwrap();

        assert!(began.elapsed() >= call_max, "{:?}", began.elapsed());
        let status = Status::from_header_map(response.headers()).expect("it says why");
        assert_eq!(Reason::of(&status), Some(Reason::CallTimeout), "{status}");
    }
}
