//! Messages that the transport cuts off by their announced length, in words that say what to do.
//!
//! The limit of a message stands above the limit of a payload, so only what could never be accepted ends
//! here. It is refused after its first five bytes: nothing is buffered, and neither field nor payload is
//! known.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use futures_util::{TryFutureExt, future::MapOk};
use kagzi_proto::Reason;
use tonic::{
    Code, Status,
    body::Body,
    codegen::http::{Request, Response},
    server::NamedService,
};
use tower::Service;

use crate::check;

/// How the decoder's refusals begin. It calls them errors of the server's; whoever sent the bytes can mend
/// them.
const UNDECODABLE: &str = "failed to decode Protobuf message";

/// Room for a request's other fields above its payload.
const ENVELOPE_BYTES: usize = 64 * 1024;

/// The longest message of a service whose requests carry one payload each.
pub fn message_bytes_max(payload_bytes_max: usize) -> usize {
    payload_bytes_max + ENVELOPE_BYTES
}

/// The longest message of all: many starts may share a call, so it takes twice the payload limit.
pub fn request_bytes_max(payload_bytes_max: usize) -> usize {
    2 * message_bytes_max(payload_bytes_max)
}

/// A service whose refusals of oversize messages read like those of oversize payloads.
#[derive(Clone)]
pub struct Worded<S>(pub S);

impl<S: NamedService> NamedService for Worded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Worded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = MapOk<S::Future, fn(Response<Body>) -> Response<Body>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request).map_ok(reword)
    }
}

fn reword(response: Response<Body>) -> Response<Body> {
    // OUT_OF_RANGE and INTERNAL: the transport's codes for messages that are too large, or no messages at
    // all.
    let ours = response.headers().get("grpc-status").is_some_and(|code| code == "11" || code == "13");
    match Status::from_header_map(response.headers()).filter(|_| ours) {
        Some(status) => clearer(status).into_http(),
        None => response,
    }
}

/// The same refusal in our words. The transport says only in its text how large the message was; should that
/// text change one day, it is passed on as it is.
pub fn clearer(status: Status) -> Status {
    if status.code() == Code::Internal && status.message().starts_with(UNDECODABLE) {
        return Reason::MessageInvalid.status(format!(
            "the request is no valid message of this method: {}; was it written by another version of the \
             protocol?",
            status.message()
        ));
    }
    if status.code() != Code::OutOfRange {
        return status;
    }
    let Some((_, sizes)) = status.message().split_once("too large: found ") else { return status };
    let mut numbers = sizes.split(' ').filter_map(|word| word.parse::<usize>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(size), Some(max_bytes)) => check::too_large("the message", size, max_bytes),
        (Some(_) | None, _) => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transports_refusal_becomes_one_that_names_size_and_limit() {
        let said =
            "Error, decoded message length too large: found 67108871 bytes, the limit is: 4325376 bytes";

        let clear = clearer(Status::out_of_range(said));

        assert_eq!(clear.code(), Code::InvalidArgument);
        let text = "the message exceeds maximum size of 4325376 bytes (67108871 bytes)";
        assert!(clear.message().starts_with(text), "{}", clear.message());
    }

    #[test]
    fn other_refusals_are_passed_on() {
        let other = clearer(Status::out_of_range("no such page"));
        assert_eq!((other.code(), other.message()), (Code::OutOfRange, "no such page"));
        assert_eq!(clearer(Status::not_found("too large: found 1 2")).code(), Code::NotFound);
    }
}
