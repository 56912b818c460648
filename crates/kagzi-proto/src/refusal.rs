//! Refusals in the form of gRPC's richer errors: a `google.rpc.Status` with an `ErrorInfo` whose reason
//! programs compare, and a `BadRequest` that names fields. The same on calls, where it travels as
//! `grpc-status-details-bin`, and on streams, where it is part of a message.

use std::collections::HashMap;

use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

use crate::{
    codes::{DOMAIN, Reason},
    google::rpc,
};

/// `google.rpc.ErrorInfo`: what programs compare.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ErrorInfo {
    /// The name of a [`Reason`].
    #[prost(string, tag = "1")]
    pub reason: String,
    /// [`DOMAIN`] for ours.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// What the reason is about, by names that docs/errors.md mentions.
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

/// `google.rpc.BadRequest`: which fields are wrong.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BadRequest {
    /// One for each.
    #[prost(message, repeated, tag = "1")]
    pub field_violations: Vec<FieldViolation>,
}

/// `google.rpc.BadRequest.FieldViolation`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FieldViolation {
    /// The path of the field from the request on, e.g. `retry_policy.jitter`.
    #[prost(string, tag = "1")]
    pub field: String,
    /// The rule that it breaks.
    #[prost(string, tag = "2")]
    pub description: String,
}

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// A refusal in the making.
#[derive(Debug, Clone)]
pub struct Refusal {
    reason: Reason,
    code: Code,
    message: String,
    metadata: HashMap<String, String>,
    fields: Vec<FieldViolation>,
}

impl Refusal {
    /// A refusal for this reason; the message is for people.
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            code: reason.code(),
            message: message.into(),
            metadata: HashMap::new(),
            fields: Vec::new(),
        }
    }

    /// Says what the reason is about.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Refusal {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// Names a field and the rule that it breaks.
    #[must_use]
    pub fn field(mut self, field: &str, rule: impl ToString) -> Refusal {
        self.fields.push(FieldViolation { field: field.to_owned(), description: rule.to_string() });
        self
    }

    /// As a gRPC status.
    pub fn status(self) -> Status {
        let mut details = vec![any(
            ERROR_INFO,
            &ErrorInfo {
                reason: self.reason.name().to_owned(),
                domain: DOMAIN.to_owned(),
                metadata: self.metadata,
            },
        )];
        if !self.fields.is_empty() {
            details.push(any(BAD_REQUEST, &BadRequest { field_violations: self.fields }));
        }
        let whole = rpc::Status { code: self.code as i32, message: self.message.clone(), details };
        Status::with_details(self.code, self.message, whole.encode_to_vec().into())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        refusal.status()
    }
}

/// A short way to a status that has nothing to add.
impl Reason {
    /// The status of a call that is refused for this reason.
    pub fn status(self, message: impl Into<String>) -> Status {
        Refusal::new(self, message).status()
    }

    /// The reason of a refusal. None when it is not ours, or a newer server's.
    pub fn of(status: &Status) -> Option<Reason> {
        error_info(status).and_then(|info| Reason::from_name(&info.reason))
    }
}

fn any(type_url: &str, message: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}

/// A refusal as it stands in the messages of streams.
pub fn to_rpc(status: &Status) -> rpc::Status {
    let details = rpc::Status::decode(status.details()).map(|whole| whole.details).unwrap_or_default();
    rpc::Status { code: status.code() as i32, message: status.message().to_owned(), details }
}

/// The same on the other side.
pub fn from_rpc(refused: rpc::Status) -> Status {
    let details = refused.encode_to_vec().into();
    Status::with_details(Code::from_i32(refused.code), refused.message, details)
}

/// Our `ErrorInfo` of a refusal, if it has one.
pub fn error_info(status: &Status) -> Option<ErrorInfo> {
    detail::<ErrorInfo>(status, ERROR_INFO).filter(|info| info.domain == DOMAIN)
}

/// The fields that a refusal names.
pub fn field_violations(status: &Status) -> Vec<FieldViolation> {
    detail::<BadRequest>(status, BAD_REQUEST).map(|request| request.field_violations).unwrap_or_default()
}

fn detail<M: Message + Default>(status: &Status, type_url: &str) -> Option<M> {
    let whole = rpc::Status::decode(status.details()).ok()?;
    let found = whole.details.iter().find(|detail| detail.type_url == type_url)?;
    M::decode(found.value.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_the_same_on_calls_and_on_streams() {
        let refusal = Refusal::new(Reason::FieldInvalid, "page_size is -1: it must be positive");
        let status = refusal.with("limit", 1000).field("page_size", "it must be positive").status();

        let heard = from_rpc(to_rpc(&status));

        for status in [&status, &heard] {
            assert_eq!(status.code(), Code::InvalidArgument);
            assert_eq!(status.message(), "page_size is -1: it must be positive");
            assert_eq!(Reason::of(status), Some(Reason::FieldInvalid));
            assert_eq!(error_info(status).unwrap().metadata["limit"], "1000");
            assert_eq!(field_violations(status)[0].field, "page_size");
        }
    }

    #[test]
    fn a_status_of_somebody_else_has_no_reason() {
        assert_eq!(Reason::of(&Status::unimplemented("no such method")), None);
        assert_eq!(to_rpc(&Status::unimplemented("no such method")).details, []);
    }
}
