//! Payloads: bytes that we keep and hand back, and never read.

use bytes::Bytes;

use crate::Name;

/// Opaque bytes with a hint how to read them. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes as they came.
    pub data: Bytes,
    /// A media type; empty means `application/json`.
    pub content_type: Name,
}

impl Payload {
    /// Wraps JSON text or any bytes of the default content type.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Payload { data: data.into(), content_type: Name::empty() }
    }
}

impl std::fmt::Debug for Payload {
    /// Payloads may hold secrets, so only their size is ever printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.data.len())
    }
}
