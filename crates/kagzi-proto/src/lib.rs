//! The public contract as Rust types. `src/generated` is written by `cargo test -p kagzi-proto` from
//! `proto/kagzi/v1` and committed, so that building Kagzi needs no `protoc`.

pub mod codes;
mod digest;
mod encoded;
mod idempotency_key;
mod promise_token;
pub mod refusal;
mod reply_path;
pub mod words;

pub use codes::{PAYLOAD_TOO_LARGE, Reason};
pub use digest::sha256_hex;
pub use encoded::{COMPRESSED, ENCRYPTED, EncodedText, WORKFLOW_FAILED, key_id};
pub use idempotency_key::{IDEMPOTENCY_KEY_BYTES_MAX, idempotency_key};
pub use promise_token::PromiseToken;
pub use refusal::Refusal;
pub use reply_path::{REJECTED, REPLY, reply_path};

/// Messages, clients and servers of package `kagzi.v1`.
pub use kagzi::v1;

// The generated code names other packages by their place, so the modules stand as the packages do.
mod kagzi {
    #[allow(clippy::all, missing_docs)]
    pub mod v1 {
        include!("generated/kagzi.v1.rs");
    }
}

/// Messages of Google's that the contract uses.
pub mod google {
    /// `google.rpc.Status`, from `proto/google/rpc/status.proto`.
    #[allow(clippy::all, missing_docs)]
    pub mod rpc {
        include!("generated/google.rpc.rs");
    }
}

/// The compiled descriptors, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");
