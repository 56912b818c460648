//! A parked run: what its row says about the one wait that people are shown.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{Wait, child, event, person, retry, signal, timer};
use crate::{Failure, Name, Reason, Timestamp};

/// Why a parked run does not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The step that waits; none when the run as a whole does, after its worker was lost or it was given
    /// back.
    pub step: Option<Name>,
    /// Attempts that ended before a retry.
    pub attempt: u32,
    /// When it goes on by itself: the earliest time of anything that it waits for.
    pub at: Option<Timestamp>,
    pub wait: Wait,
    /// Since when it waits for somebody; waits for time alone need not say so.
    pub since: Option<Timestamp>,
    /// Other steps that wait for somebody too.
    pub others: u32,
    /// How many of them must have ended before it goes on.
    pub wake: Wake,
}

/// When a parked run goes on that waits for several things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// With the first of them.
    #[default]
    First = 0,
    /// With the last of them: a thousand children wake their parent once.
    Last = 1,
    /// With the last of them, or the first that failed.
    LastOrFailed = 2,
}

impl Wake {
    /// The one with this number.
    pub fn from_number(number: u64) -> Option<Wake> {
        [Wake::First, Wake::Last, Wake::LastOrFailed].into_iter().find(|wake| *wake as u64 == number)
    }

    /// Whether the end of a step wakes the run, when so many others go on waiting.
    pub fn is_reached(self, failed: bool, left: usize) -> bool {
        match self {
            Wake::First => true,
            Wake::Last => left == 0,
            Wake::LastOrFailed => left == 0 || failed,
        }
    }
}

/// As it is stored: one flat object that begins with the reason.
#[derive(Serialize, Deserialize)]
struct Stored {
    is: Name,
    step: Option<Name>,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<Name>,
    /// When the wait for somebody is over by itself. Not `at`: something else may be due before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    others: u32,
    #[serde(default, skip_serializing_if = "is_first")]
    wake: Wake,
}

fn is_first(wake: &Wake) -> bool {
    *wake == Wake::First
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Serialize for Parked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Parked { step, attempt, at, wait, since, others, wake } = self;
        let stored = Stored {
            is: Name::from(wait.reason().name()),
            step: step.clone(),
            attempt: *attempt,
            at: *at,
            failure: wait.failure().cloned(),
            channel: wait.channel().cloned(),
            until: wait.channel().and(wait.due_at()),
            since: *since,
            others: *others,
            wake: *wake,
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Parked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { is, step, attempt, at, failure, channel, until, since, others, wake } =
            Stored::deserialize(deserializer)?;
        let time = at.ok_or_else(|| D::Error::missing_field("at"));
        let wait = match Reason::from_name(&is) {
            Some(timer::REASON) => Wait::Timer { until: time? },
            Some(retry::REASON) => {
                let failure = failure.ok_or_else(|| D::Error::missing_field("failure"))?;
                Wait::Retry { at: time?, failure }
            }
            Some(signal::REASON | child::REASON | person::REASON | event::REASON) => {
                let channel = channel.ok_or_else(|| D::Error::missing_field("channel"))?;
                Wait::on(channel, until)
            }
            Some(Reason::Ready | Reason::Leased | Reason::Paused) | None => {
                const KNOWN: &[&str] = &[
                    timer::REASON.name(),
                    retry::REASON.name(),
                    signal::REASON.name(),
                    child::REASON.name(),
                    event::REASON.name(),
                    person::REASON.name(),
                ];
                return Err(D::Error::unknown_variant(&is, KNOWN));
            }
        };
        Ok(Parked { step, attempt, at, wait, since, others, wake })
    }
}

#[cfg(test)]
mod tests {
    use super::{Parked, Wait, Wake};
    use crate::{Failure, State, Timestamp};

    #[test]
    fn a_wait_for_somebody_keeps_its_own_time_when_something_else_is_due_before() {
        for until in [None, Some(Timestamp(90))] {
            let wait = Wait::Signal { channel: "paid".into(), until };
            let (step, since) = (Some("wait".into()), Some(Timestamp(1)));
            let parked = Parked {
                step,
                attempt: 0,
                at: Some(Timestamp(5)),
                wait,
                since,
                others: 0,
                wake: Wake::First,
            };
            let line = serde_json::to_string(&parked).unwrap();

            assert_eq!(serde_json::from_str::<Parked>(&line).unwrap(), parked);
        }
    }

    /// Databases from before have these lines, and their listings look for the reason by name.
    #[test]
    fn a_parked_run_is_stored_under_its_reason() {
        let timer = State::timer("nap".into(), Timestamp(7));
        let retry = State::retry(None, 2, Timestamp(9), Failure::new("LOST", "gone"));

        let lines = [&timer, &retry].map(|state| serde_json::to_string(state).unwrap());

        assert_eq!(lines[0], r#"{"is":"timer","step":"nap","at":7}"#);
        assert!(lines[1].starts_with(r#"{"is":"retry","step":null,"attempt":2,"at":9,"failure":{"#));
        for (line, state) in lines.iter().zip([timer, retry]) {
            assert_eq!(serde_json::from_str::<State>(line).unwrap(), state);
        }
        assert!(serde_json::from_str::<State>(r#"{"is":"ring","step":"a","at":7}"#).is_err());
    }
}
