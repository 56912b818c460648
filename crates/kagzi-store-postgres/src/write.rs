//! The rows of a batch as arrays: one statement per table and kind of write, however many rows there are.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use kagzi_store::WriteSet;
use tokio_postgres::{Error, types::ToSql};
use uuid::Uuid;

use crate::{
    controls, events, generations, interventions, labels, notices, nouns, runs, schedules, session::Session,
    topics, workers,
};

pub(crate) type Sending<'s> = BoxFuture<'s, Result<(), Error>>;

/// The statements of a write set, in order. Each is sent when it is first polled; nothing waits for the one
/// before.
pub fn statements(session: &Session, server: Uuid, set: WriteSet) -> Vec<Sending<'_>> {
    let WriteSet {
        unnamed,
        inserted,
        updated,
        events,
        continued,
        labels,
        workers,
        leased_to,
        schedules,
        namespaces,
        gates,
        nouns,
        subscribed,
        unsubscribed,
        people,
    } = set;
    let mut sending: Vec<Sending<'_>> = Vec::with_capacity(6);
    sending.extend(workers::guard(session, server, leased_to));
    sending.extend(runs::statements(session, unnamed, inserted, updated));
    if !events.is_empty() {
        sending.push(Box::pin(async move {
            let packed = events::packed(&events);
            send(session, events::INSERT_EVENTS, events::columns(&packed)).await
        }));
    }
    sending.extend(generations::statements(session, continued));
    sending.extend(labels::statements(session, labels));
    sending.extend(workers::statements(session, workers));
    sending.extend(schedules::statements(session, schedules));
    sending.extend(controls::statements(session, namespaces, gates));
    sending.extend(nouns::statements(session, nouns));
    sending.extend(topics::statements(session, subscribed, unsubscribed));
    if let Some(people) = people {
        let kagzi_store::PeopleSet { questions, silenced, notices, settled } = *people;
        sending.extend(interventions::statements(session, questions));
        sending.extend(notices::statements(session, silenced, notices, settled));
    }
    sending
}

/// One array per column.
pub(crate) type Columns<'r> = Vec<Box<dyn ToSql + Sync + Send + 'r>>;

pub(crate) async fn send(session: &Session, sql: &str, columns: Columns<'_>) -> Result<(), Error> {
    let bind: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
    session.query(sql, &bind).await.map(drop)
}

pub(crate) fn column<'r, R, T: ToSql + Sync + Send + 'r>(
    rows: &'r [R],
    value: impl Fn(&'r R) -> T,
) -> Box<dyn ToSql + Sync + Send + 'r> {
    Box::new(rows.iter().map(value).collect::<Vec<T>>())
}

/// Text that nobody checked. PostgreSQL refuses a NUL, and one worker's must not fail its neighbours' batch.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { Cow::Borrowed(text) }
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are always valid JSON")
}
