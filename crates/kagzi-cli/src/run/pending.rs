//! What a run has not dealt with, as `run show` prints it: signals that nobody has read, waits that are open
//! and children that live.

use super::event::EventView;
use crate::payload::readable;
use crate::table;
use crate::time_text;
use jiff::Timestamp;
use kagzi::client::{Run, RunHandle};
use kagzi_model::history::{OpenWait, pending};
use kagzi_model::{PROMISE_CHANNEL, Topic, Wait, child_of};
use serde::Serialize;

/// Without one of these a run has nothing that it could wait for.
const BEGINNINGS: [&str; 6] =
    ["signal_received", "wait_began", "child_started", "sleep_scheduled", "step_failed", "run_continued"];
/// A longer history is not read for this.
const EVENTS_MAX: usize = 10_000;
const PAGE_LEN: u16 = 1_000;

/// As `-o json` prints it. Fields are only ever added.
#[derive(Debug, Default, Serialize)]
pub struct PendingView {
    pub unread_signals: Vec<UnreadView>,
    pub waits: Vec<WaitView>,
    /// Of a run that has started any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenView>,
}

#[derive(Debug, Serialize)]
pub struct UnreadView {
    pub channel: String,
    pub count: usize,
}

#[derive(Debug, Serialize)]
pub struct WaitView {
    pub step: String,
    /// timer, retry, signal, promise or child.
    pub kind: &'static str,
    /// The channel, the promise's name, the child's run id or the failure; null for a sleep.
    pub what: Option<String>,
    pub since: Option<Timestamp>,
    /// Null = for as long as it takes.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
pub struct ChildrenView {
    pub started: usize,
    /// Those whose end the run has not heard of.
    pub living: usize,
}

impl PendingView {
    /// Reads the run's history, if anything in it can be pending. None where it is too long to be read for
    /// this.
    pub async fn of(run: &Run, handle: &RunHandle) -> anyhow::Result<Option<PendingView>> {
        let beginnings = BEGINNINGS.iter().fold(handle.history(), |history, kind| history.kind(*kind));
        if beginnings.page_size(1).page("").await?.rows.is_empty() {
            return Ok(Some(PendingView::default()));
        }
        let history = handle.history().page_size(PAGE_LEN);
        let (mut events, mut token) = (Vec::new(), String::new());
        loop {
            let page = history.page(token).await?;
            events.extend(page.rows.into_iter().map(EventView::from));
            match page.next {
                None => break,
                Some(_) if events.len() >= EVENTS_MAX => return Ok(None),
                Some(next) => token = next,
            }
        }
        Ok(Some(PendingView::from_events(&events, run.status.has_ended())))
    }

    fn from_events(events: &[EventView], ended: bool) -> PendingView {
        let recorded: Vec<_> = events.iter().filter_map(EventView::recorded).collect();
        let left = pending(&recorded);
        let unread = left.unread.into_iter();
        PendingView {
            unread_signals: unread
                .map(|(channel, count)| UnreadView { channel: channel.to_string(), count })
                .collect(),
            // Whatever a run that has ended waited for, it waits no more.
            waits: if ended { Vec::new() } else { left.waits.into_iter().map(WaitView::from).collect() },
            children: (left.started > 0)
                .then_some(ChildrenView { started: left.started, living: left.living }),
        }
    }

    /// A table of the waits, and a line for each of the others; nothing where nothing is pending.
    pub fn text(&self, now: Timestamp) -> String {
        let mut parts = Vec::new();
        if !self.waits.is_empty() {
            let mut table = table::with_columns(&["WAITS IN", "FOR", "SINCE", "UNTIL"]);
            let time =
                |at: Option<Timestamp>| at.map_or("-".into(), |at| time_text::absolute_and_relative(at, now));
            for wait in &self.waits {
                table.add_row([wait.step.clone(), wait.sought(), time(wait.since), time(wait.until)]);
            }
            parts.push(table::text(table));
        }
        if !self.unread_signals.is_empty() {
            let each = self.unread_signals.iter().map(|it| format!("{} × {}", it.count, it.channel));
            parts.push(format!("unread signals: {}", each.collect::<Vec<_>>().join(", ")));
        }
        if let Some(children) = &self.children {
            parts.push(format!("children: {} live of {} started", children.living, children.started));
        }
        parts.join("\n\n")
    }
}

impl From<OpenWait> for WaitView {
    fn from(OpenWait { step, since, wait }: OpenWait) -> WaitView {
        let until = wait.due_at().and_then(read_time);
        let (kind, what) = match &wait {
            Wait::Timer { .. } => ("timer", None),
            Wait::Retry { failure, .. } => ("retry", Some(failure.message.clone())),
            Wait::Signal { channel, .. } => {
                match (channel.strip_prefix(PROMISE_CHANNEL), Topic::of_channel(channel)) {
                    (Some(name), _) => ("promise", Some(name.to_owned())),
                    (None, Some(topic)) => ("event", Some(topic.words())),
                    (None, None) => ("signal", Some(channel.to_string())),
                }
            }
            Wait::Person { .. } => ("person", None),
            Wait::Child { channel, .. } => ("child", child_of(channel).map(|child| child.to_string())),
        };
        WaitView { step: step.to_string(), kind, what, since: read_time(since), until }
    }
}

impl WaitView {
    fn sought(&self) -> String {
        match &self.what {
            Some(what) => format!("{} {}", self.kind, readable(what)),
            None => self.kind.to_owned(),
        }
    }
}

fn read_time(at: kagzi_model::Timestamp) -> Option<Timestamp> {
    Timestamp::from_microsecond(at.0).ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::output;
    use crate::run::view::tests::sample_now;
    use kagzi::history::Event;
    use serde_json::{Value, json};

    const CHILDREN: [&str; 2] =
        ["0199f3c2-0000-7000-8000-00000000000a", "0199f3c2-0000-7000-8000-00000000000b"];

    /// As the server tells them: the kind and the step stand in columns of their own.
    fn history() -> Vec<EventView> {
        let child = |number: usize, step: &str| {
            let detail = json!({
                "position": 0, "child": CHILDREN[number], "workflow_type": "pack", "task_queue": "orders",
                "close": "cancel", "awaited": true, "told": true, "until": 1_794_744_120_000_000_i64,
            });
            ("child_started", Some(step.to_owned()), detail)
        };
        let told =
            |channel: &str, id: &str| ("signal_received", None, json!({ "channel": channel, "id": id }));
        let kinds: Vec<(&str, Option<String>, Value)> = vec![
            ("run_started", None, json!({})),
            told("item", "a"),
            told("item", "b"),
            told("note", "c"),
            child(0, "pack"),
            child(1, "ship"),
            told(&format!("~child/{}", CHILDREN[0]), "end"),
            ("wait_began", Some("approval".into()), json!({ "position": 0, "channel": "approved" })),
            ("wait_began", Some("payment".into()), json!({ "position": 1, "channel": "~promise/card" })),
        ];
        let events = (1..).zip(kinds).map(|(sequence, (kind, step, detail))| {
            let mut event = Event::default();
            let since = std::time::Duration::from_secs(1_794_744_000 + sequence);
            (event.sequence, event.at) = (sequence, std::time::SystemTime::UNIX_EPOCH + since);
            (event.kind, event.step, event.detail) = (kind.to_owned(), step, detail);
            EventView::from(event)
        });
        events.collect()
    }

    pub fn sample_pending() -> PendingView {
        PendingView::from_events(&history(), false)
    }

    #[test]
    fn what_is_pending_as_text() {
        insta::assert_snapshot!(sample_pending().text(sample_now()));
    }

    #[test]
    fn what_is_pending_as_json() {
        insta::assert_snapshot!(output::json(&sample_pending()));
    }

    #[test]
    fn a_run_that_has_ended_waits_for_nothing_and_may_have_left_signals_unread() {
        let ended = PendingView::from_events(&history(), true);

        assert!(ended.waits.is_empty());
        assert_eq!(ended.unread_signals.len(), 2);
        assert_eq!(PendingView::default().text(sample_now()), "");
    }
}
