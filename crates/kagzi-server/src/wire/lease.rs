//! Leases, from the message that the streams use or from the fields that unary calls spell out.

use kagzi_model::{LeaseRef, Name};
use kagzi_proto::v1;
use tonic::Status;

use crate::check;

/// The lease of a unary call: `named`, or run id and epoch by themselves.
pub fn read_lease(
    namespace: &Name,
    named: Option<&v1::LeaseRef>,
    (run_id, epoch): (&str, u64),
) -> Result<LeaseRef, Status> {
    match named {
        Some(named) => check::lease_ref(namespace, Some(named)),
        None => check::lease(namespace, run_id, epoch),
    }
}
