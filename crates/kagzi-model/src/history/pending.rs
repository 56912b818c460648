//! What a run has not dealt with: signals that nobody has read, waits that are open, children that live.

use super::{Aggregate, Projection};
use crate::{
    Event, Name, Payload, Run, RunId, RunOptions, StartRun, StepState, Timestamp, Wait, is_child_channel,
};

/// What is left to do, as far as the history says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pending {
    /// Signals that no wait has taken: how many on each channel, by name. The ends of children are told on
    /// channels, too, but nobody sent them.
    pub unread: Vec<(Name, usize)>,
    /// Oldest first. What the code has dropped is not among them.
    pub waits: Vec<OpenWait>,
    /// Children that the run has started, and those whose end it has not heard of. The end of one that was
    /// let go and that nobody waits for is never told, so it is not among the living.
    pub started: usize,
    pub living: usize,
}

/// A step that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenWait {
    pub step: Name,
    pub since: Timestamp,
    pub wait: Wait,
}

/// What the whole history of a run leaves open.
pub fn pending(events: &[Event]) -> Pending {
    let mut seen = Aggregate::new(nobody(), 0);
    events.iter().for_each(|event| Projection::absorb(&mut seen, event));
    let mut waits: Vec<OpenWait> = seen.open_steps().filter_map(open_wait).collect();
    waits.sort_by(|a, b| (a.since, &a.step).cmp(&(b.since, &b.step)));
    let unread = seen.mail.iter().flat_map(|mail| mail.unread());
    let unread = unread.filter(|(channel, _)| !is_child_channel(channel));
    let mut unread: Vec<_> = unread.map(|(channel, len)| (channel.clone(), len)).collect();
    unread.sort_unstable();
    let (started, living) =
        seen.family.as_deref().map_or((0, 0), |family| (family.started_len(), family.living().count()));
    Pending { unread, waits, started, living }
}

fn open_wait(step: &crate::Step) -> Option<OpenWait> {
    match &step.state {
        StepState::Waiting(wait) => {
            Some(OpenWait { step: step.path.clone(), since: step.since, wait: wait.clone() })
        }
        StepState::Running { .. } | StepState::Done(_) => None,
    }
}

/// A history says nothing of its run's row, and nothing of the row is asked for here.
fn nobody() -> Run {
    let start = StartRun {
        namespace: Name::from(""),
        id: RunId(uuid::Uuid::nil()),
        business_id: None,
        workflow_type: Name::from(""),
        task_queue: Name::from(""),
        input: Payload::new(&b""[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    };
    Run::begun(Timestamp(0), &start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClosePolicy, EventKind, child_channel};

    fn received(channel: &str, id: &str) -> EventKind {
        EventKind::SignalReceived { channel: channel.into(), id: id.into(), failure: None, published: None }
    }

    fn child(step: &str, id: u128, until: Option<Timestamp>) -> EventKind {
        EventKind::ChildStarted {
            step: step.into(),
            position: 0,
            child: RunId(uuid::Uuid::from_u128(id)),
            workflow_type: "pack".into(),
            task_queue: "orders".into(),
            close: ClosePolicy::Cancel,
            awaited: true,
            until,
            told: true,
        }
    }

    fn wait(step: &str, channel: &str) -> EventKind {
        EventKind::WaitBegan { step: step.into(), position: 0, channel: channel.into(), until: None }
    }

    fn of(kinds: Vec<EventKind>) -> Pending {
        let events = (1..).zip(kinds).map(|(seq, kind)| Event {
            seq,
            at: Timestamp(1_000 * i64::try_from(seq).unwrap()),
            kind,
            payload: None,
        });
        pending(&events.collect::<Vec<_>>())
    }

    #[test]
    fn what_was_taken_dropped_or_has_ended_is_not_pending() {
        let packed = child_channel(RunId(uuid::Uuid::from_u128(1)));
        let taken = EventKind::WaitEnded {
            step: "first".into(),
            position: 0,
            channel: "item".into(),
            id: "a".into(),
            received: Some(2),
            failure: None,
            published: None,
        };
        let dropped = EventKind::StepClosed { step: "loser".into(), position: 0, attempt: 0 };

        let left = of(vec![
            EventKind::RunStarted,
            received("item", "a"),
            received("item", "b"),
            received("item", "c"),
            received("a-note", "d"),
            wait("first", "item"),
            taken,
            wait("loser", "approved"),
            dropped,
            child("pack", 1, None),
            child("ship", 2, Some(Timestamp(99_000))),
            received(&packed, "end"),
            wait("approval", "approved"),
        ]);

        assert_eq!(left.unread, [("a-note".into(), 1), ("item".into(), 2)]);
        let shipped = child_channel(RunId(uuid::Uuid::from_u128(2)));
        let steps: Vec<_> = left.waits.iter().map(|it| (&*it.step, it.since, it.wait.channel())).collect();
        let approved = Name::from("approved");
        // Its child has ended, but the code was not told yet.
        assert_eq!(steps[0], ("pack", Timestamp(10_000), Some(&packed)));
        assert_eq!(
            steps[1..],
            [("ship", Timestamp(11_000), Some(&shipped)), ("approval", Timestamp(13_000), Some(&approved)),]
        );
        assert_eq!(left.waits[1].wait.due_at(), Some(Timestamp(99_000)));
        assert_eq!((left.started, left.living), (2, 1));
    }

    #[test]
    fn a_run_that_waits_for_nobody_has_nothing_pending() {
        assert_eq!(of(vec![EventKind::RunStarted]), Pending::default());
    }
}
