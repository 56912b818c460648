//! Business ids that only the engine gives out. A caller that could take one would stand in the way of a
//! failure handler or of a scheduled run.

use uuid::Uuid;

/// How the business id begins of a run that was started with a request id and without a business id.
pub const REQUESTED: &str = "request:";

/// What an id is that callers may not choose: none when it is free.
pub fn reserved(business_id: &str) -> Option<&'static str> {
    let names_a_run = |prefix| business_id.strip_prefix(prefix).is_some_and(|id| Uuid::try_parse(id).is_ok());
    if names_a_run("failure-") || names_a_run("system-failure-") {
        return Some("the id of a failure handler");
    }
    if business_id.starts_with(REQUESTED) {
        return Some("the id of a run that was started with a request id");
    }
    let scheduled = business_id.strip_prefix("schedule:").is_some_and(is_scheduled);
    scheduled.then_some("the id of a scheduled run")
}

/// `ID:TIME` or `ID:trigger:NAME`. An id of a schedule may have colons of its own, and a time has.
fn is_scheduled(rest: &str) -> bool {
    let is_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
    rest.contains(":trigger:") || rest.match_indices(':').any(|(at, _)| is_time(&rest[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, Timestamp, schedule::key};

    #[test]
    fn the_exact_shapes_of_our_own_ids_are_reserved_and_what_looks_alike_is_not() {
        let uuid = "01890a5d-ac96-774b-bcce-b302099a8057";
        let at = Timestamp::from_millis(1_794_800_000_000);
        let ours = [
            format!("failure-{uuid}"),
            format!("system-failure-{uuid}"),
            key::business_id(&Name::from("nightly"), at).to_string(),
            key::business_id(&Name::from("a:b"), Timestamp(at.0 + 1)).to_string(),
            key::triggered_id(&Name::from("nightly"), &Name::from("by-hand")).to_string(),
        ];
        let free = ["failure-of-the-week", "failure-", "schedule:", "schedule:nightly", "order-1", uuid];

        assert_eq!(ours.iter().filter(|id| reserved(id).is_none()).collect::<Vec<_>>(), [] as [&String; 0]);
        assert_eq!(free.iter().filter(|id| reserved(id).is_some()).collect::<Vec<_>>(), [] as [&&str; 0]);
    }
}
