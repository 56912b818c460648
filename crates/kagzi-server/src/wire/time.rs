//! Times as protobuf has them.

use std::ops::RangeInclusive;

use kagzi_model::Timestamp;
use tonic::Status;

use crate::check::invalid;

pub fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.0.div_euclid(1_000_000),
        nanos: i32::try_from(at.0.rem_euclid(1_000_000) * 1000).expect("below a second"),
    }
}

/// The seconds of the years 1 to 9999: what protobuf's own timestamps may be, and what clients can write as
/// text.
const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

pub fn read_timestamp(field: &str, at: &prost_types::Timestamp) -> Result<Timestamp, Status> {
    let prost_types::Timestamp { seconds, nanos } = *at;
    if !SECONDS.contains(&seconds) {
        let rule = "it must be a time of the years 1 to 9999, in seconds from 1970";
        return Err(invalid(field, format_args!("{seconds} s"), rule));
    }
    if !(0..1_000_000_000).contains(&nanos) {
        let rule = "the nanoseconds of a time must be from 0 to 999999999";
        return Err(invalid(field, format_args!("{seconds} s and {nanos} ns"), rule));
    }
    Ok(Timestamp(seconds * 1_000_000 + i64::from(nanos) / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_client_can_write_is_refused_with_its_own_number() {
        let read = |seconds, nanos| read_timestamp("deadline_at", &prost_types::Timestamp { seconds, nanos });

        assert_eq!(read(253_402_300_799, 999_999_999).unwrap().0, 253_402_300_799_999_999);
        let refused = read(253_402_300_800, 0).unwrap_err();
        assert!(refused.message().starts_with("deadline_at is 253402300800 s: "), "{refused}");
        assert!(read(i64::MAX, 0).is_err() && read(i64::MIN, 0).is_err());
        assert!(read(0, -1).unwrap_err().message().starts_with("deadline_at is 0 s and -1 ns: "));
    }
}
