//! Who may ask what: the rule that keeps browsers out.
//!
//! A page of any site may send "simple" requests to a server on loopback, without asking it first. So a call
//! must be HTTP/2 with a content type of gRPC, which no page can send, and HTTP/1 is for reading probes
//! alone. With a name that its owner binds to 127.0.0.1 a page could even read the answers, so a server on
//! loopback is asked only under its own names (`Host`, or `:authority`).

use std::net::IpAddr;

use kagzi_proto::Reason;
use tonic::{
    body::Body,
    codegen::http::{HeaderMap, Method, Request, Response, StatusCode, Version, header},
};

/// Pages that are read over plain HTTP.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Under which names the server may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    Any,
    /// Those of loopback, and these, in lower case.
    Named(Vec<String>),
}

impl Hosts {
    pub fn of_loopback(more: &[String]) -> Hosts {
        Hosts::Named(more.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    fn allow(&self, host: &str) -> bool {
        let Hosts::Named(more) = self else { return true };
        let name = without_port(host).to_ascii_lowercase();
        let loopback = |address: IpAddr| address.is_loopback();
        name == "localhost"
            || name.trim_matches(['[', ']']).parse().is_ok_and(loopback)
            || more.contains(&name)
            || more.contains(&host.to_ascii_lowercase())
    }
}

/// The name of an authority. The colons of an IPv6 address stand in brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') && !port.is_empty() => name,
        Some(_) | None => host,
    }
}

/// What becomes of a request.
pub enum Admission {
    /// A probe or the metrics.
    Probe,
    /// A call.
    Call,
    /// Answered here, and counted under this reason.
    Refused { reason: Refusal, response: Box<Response<Body>> },
}

/// Why a request was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Asked under a name that is not ours.
    Host,
    /// Not the protocol of calls.
    Protocol,
}

impl Refusal {
    pub const ALL: [Refusal; 2] = [Refusal::Host, Refusal::Protocol];

    pub fn name(self) -> &'static str {
        match self {
            Refusal::Host => "host",
            Refusal::Protocol => "protocol",
        }
    }
}

/// Decides about a request by its head.
pub fn admit(hosts: &Hosts, request: &Request<Body>) -> Admission {
    let grpc = is_grpc(request.headers());
    let host = host(request);
    if !host.is_some_and(|host| hosts.allow(host)) && *hosts != Hosts::Any {
        return misdirected(host.unwrap_or_default(), grpc);
    }
    if PROBES.contains(&request.uri().path()) {
        return match *request.method() {
            Method::GET | Method::HEAD => Admission::Probe,
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "this page is only read, with GET".into()),
        };
    }
    if request.version() == Version::HTTP_2 && grpc && *request.method() == Method::POST {
        return Admission::Call;
    }
    let path = request.uri().path();
    // Calls have a service and a method in their path; anything else is a page that does not exist.
    if matches!(*request.method(), Method::GET | Method::HEAD) && path.matches('/').count() < 2 {
        return plain(
            StatusCode::NOT_FOUND,
            format!("there is no page {path}; there are {}", PROBES.join(", ")),
        );
    }
    let said = "calls are gRPC: HTTP/2, POST and the content type application/grpc";
    plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, said.into())
}

/// The content type of gRPC, with its encoding or without.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let rest = kind.strip_prefix("application/grpc");
    // `application/grpc-web` is what a browser's library sends, and is another protocol.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// HTTP/2 has it in the target, HTTP/1 in a header. A request with several has none.
fn host(request: &Request<Body>) -> Option<&str> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let header = named.next();
    if named.next().is_some() {
        return None;
    }
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => header?.to_str().ok(),
    }
}

fn misdirected(host: &str, grpc: bool) -> Admission {
    let shown: String = host.chars().take(80).collect();
    let said = format!(
        "this server listens on loopback and is not called {shown:?}; if that name is yours, add it to \
         server.allowed_hosts"
    );
    let reason = Refusal::Host;
    if grpc {
        let response = Box::new(Reason::HostRefused.status(said).into_http());
        return Admission::Refused { reason, response };
    }
    let Admission::Refused { response, .. } = plain(StatusCode::MISDIRECTED_REQUEST, said) else {
        unreachable!("a plain answer is a refusal")
    };
    Admission::Refused { reason, response }
}

fn plain(status: StatusCode, said: String) -> Admission {
    let mut response = Response::new(Body::new(said + "\n"));
    *response.status_mut() = status;
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    Admission::Refused { reason: Refusal::Protocol, response: Box::new(response) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_this_machine_are_loopback() {
        let hosts = Hosts::of_loopback(&["Kagzi.internal".into()]);

        for ours in [
            "localhost",
            "localhost:50051",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.1.2.3:9",
            "[::1]",
            "[::1]:50051",
            "kagzi.internal:443",
            "KAGZI.INTERNAL",
        ] {
            assert!(hosts.allow(ours), "{ours}");
        }
        for foreign in ["", ":80", "evil.example", "localhost.evil.example", "10.0.0.1", "0.0.0.0", "[::2]:1"]
        {
            assert!(!hosts.allow(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_content_type_of_grpc_is_not_that_of_a_browser() {
        let of = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
            is_grpc(&headers)
        };

        assert!(of("application/grpc") && of("application/grpc+proto") && of("application/grpc;x=y"));
        assert!(!of("application/grpc-web") && !of("text/plain") && !of("application/json"));
        assert!(!is_grpc(&HeaderMap::new()));
    }
}
