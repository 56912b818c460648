//! Times as protobuf has them.

use kagzi_model::Timestamp;
use tonic::Status;

use crate::check::invalid;

pub fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.0.div_euclid(1_000_000),
        nanos: i32::try_from(at.0.rem_euclid(1_000_000) * 1000).expect("below a second"),
    }
}

pub fn read_timestamp(field: &str, at: &prost_types::Timestamp) -> Result<Timestamp, Status> {
    let micros = at.seconds.checked_mul(1_000_000).and_then(|us| us.checked_add(i64::from(at.nanos) / 1000));
    match micros {
        Some(us) if (0..1_000_000_000).contains(&at.nanos) => Ok(Timestamp(us)),
        Some(_) | None => Err(invalid(
            field,
            at,
            "it is not a valid time; seconds count from 1970 and nanos are from 0 to 999999999",
        )),
    }
}
