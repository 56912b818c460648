//! The public contract as Rust types. `src/generated` is written by `cargo test -p kagzi-proto` from
//! `proto/kagzi/v1` and committed, so that building Kagzi needs no `protoc`.

mod encoded;
mod idempotency_key;

pub use encoded::{COMPRESSED, ENCRYPTED, EncodedText, PAYLOAD_TOO_LARGE, WORKFLOW_FAILED, key_id};
pub use idempotency_key::{IDEMPOTENCY_KEY_BYTES_MAX, idempotency_key};

/// Messages, clients and servers of package `kagzi.v1`.
#[allow(clippy::all, missing_docs)]
pub mod v1 {
    include!("generated/kagzi.v1.rs");
}

/// The compiled descriptors, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");
