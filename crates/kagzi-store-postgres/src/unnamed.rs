//! Statements without a name, for a pooler in transaction mode (PgBouncer): the connection behind it may be
//! another one for every transaction, and a statement that was prepared on the last one is not there.

use std::collections::HashMap;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio_postgres::{
    Client, Error, Row,
    types::{ToSql, Type},
};

use crate::session::{Bind, within};

/// Values with their types.
pub type Typed<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// What a session needs to run statements without preparing them: the types of their values.
pub struct Unnamed {
    types: Mutex<HashMap<String, Vec<Type>>>,
    /// Outside a transaction the pooler may take the connection away after each answer, so that one statement
    /// must be answered before the next is sent. Inside one, flights of many are fine.
    turn: Option<tokio::sync::Mutex<()>>,
    /// Begins a transaction of our own, with settings that a session must not keep.
    begin: Option<String>,
}

impl Unnamed {
    /// For a session that sends everything within transactions, or for one that does not.
    pub fn new(in_transactions: bool, begin: Option<String>) -> Self {
        let turn = (!in_transactions).then(|| tokio::sync::Mutex::new(()));
        Unnamed { types: Mutex::default(), turn, begin }
    }

    /// Runs a statement. It is sent when this is first polled, if its types are known.
    pub async fn query(&self, client: &Client, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, Error> {
        let _turn = match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        if !bind.is_empty() && !self.types.lock().contains_key(sql) {
            debug_assert!(self.turn.is_some(), "within a transaction everything was learnt before: {sql}");
            self.ask(client, &[sql]).await?;
        }
        let types = self.types.lock().get(sql).cloned().unwrap_or_default();
        let bind: Vec<_> = bind.iter().copied().zip(types).collect();
        self.send(client, sql, &bind).await
    }

    /// Runs a statement whose types are named.
    pub async fn query_typed(&self, client: &Client, sql: &str, bind: Typed<'_>) -> Result<Vec<Row>, Error> {
        let _turn = match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        self.send(client, sql, bind).await
    }

    async fn send(&self, client: &Client, sql: &str, bind: Typed<'_>) -> Result<Vec<Row>, Error> {
        let begin = self.begin.as_deref().filter(|_| self.turn.is_some());
        within(client, begin, client.query_typed(sql, bind)).await
    }

    /// Asks for the types of statements ahead.
    pub async fn learn(&self, client: &Client, statements: &[&str]) -> Result<(), Error> {
        let _turn = match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        self.ask(client, statements).await
    }

    /// Prepares statements and forgets them again, within one transaction and so on one connection: nothing
    /// is left there for the next to stumble over.
    async fn ask(&self, client: &Client, statements: &[&str]) -> Result<(), Error> {
        client.batch_execute(self.begin.as_deref().unwrap_or("BEGIN")).await?;
        let prepared = join_all(statements.iter().map(|sql| client.prepare(sql))).await;
        let learnt = prepared.iter().zip(statements).filter_map(|(prepared, sql)| {
            let types = prepared.as_ref().ok()?.params().to_vec();
            Some(((*sql).to_owned(), types))
        });
        self.types.lock().extend(learnt);
        // Dropping them sends their end, before the transaction's.
        let failed = prepared.into_iter().find_map(Result::err);
        client.batch_execute("ROLLBACK").await?;
        failed.map_or(Ok(()), Err)
    }
}
