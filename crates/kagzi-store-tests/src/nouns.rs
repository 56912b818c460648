//! Small nouns: what is kept by its id, whatever kind it is.

use std::sync::Arc;

use kagzi_model::{Name, Noun, NounChange, NounKey, NounRejection, NounRow, NounRule, Rejection, Timestamp};
use kagzi_store::{ChangeNoun, Direction};
use serde::{Deserialize, Serialize};

use crate::Stage;

/// A kind of these tests.
#[derive(Serialize, Deserialize)]
struct Hint {
    text: String,
}

impl Noun for Hint {
    const KIND: &'static str = "hint";
}

/// What these tests ask for.
enum Ask {
    Create(&'static str),
    Rewrite(&'static str),
    Delete,
}

struct Request {
    key: NounKey,
    ask: Ask,
}

impl NounRule for Request {
    fn key(&self) -> NounKey {
        self.key.clone()
    }

    fn creates(&self) -> bool {
        matches!(self.ask, Ask::Create(_))
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        let NounKey { namespace, id, .. } = self.key();
        let saying = |text: &str| NounRow::new(namespace, id, &Hint { text: text.into() }, now);
        match (&self.ask, known) {
            (Ask::Create(text), known) => NounChange::create(known, saying(text)),
            (Ask::Delete, known) => NounChange::delete(known, self.key()),
            (Ask::Rewrite(_), None) => Err(NounRejection::NotFound(self.key())),
            (Ask::Rewrite(text), Some(known)) => {
                let (version, created_at) = (known.version + 1, known.created_at);
                Ok(NounChange::Put(NounRow { version, created_at, ..saying(text) }))
            }
        }
    }
}

async fn ask(stage: &Stage, id: &str, ask: Ask) -> Result<NounRow, NounRejection> {
    let key = NounKey::of::<Hint>(stage.namespace.clone(), id.into());
    stage.store.ask(ChangeNoun(Arc::new(Request { key, ask }))).await.unwrap()
}

async fn listed(
    stage: &Stage,
    direction: Direction,
    from: Option<&str>,
    limit: usize,
) -> Vec<(Name, String)> {
    let from = from.map(Name::from);
    let rows = stage.store.nouns(&stage.namespace, Hint::KIND, direction, from.as_ref(), limit).await;
    rows.unwrap().into_iter().map(|row| (row.key.id.clone(), row.read::<Hint>().unwrap().text)).collect()
}

pub async fn a_noun_is_made_once_rewritten_and_deleted(stage: Stage) {
    let made = ask(&stage, "n", Ask::Create("one")).await.unwrap();
    stage.pass_ms(10);
    assert_eq!(ask(&stage, "n", Ask::Create("one")).await.as_ref(), Ok(&made), "the repeat of a call");
    assert_eq!(ask(&stage, "n", Ask::Create("two")).await, Err(NounRejection::Exists(made.key.clone())));

    let rewritten = ask(&stage, "n", Ask::Rewrite("two")).await.unwrap();
    assert_eq!((rewritten.version, rewritten.created_at), (2, made.created_at));
    assert_eq!(rewritten.updated_at, stage.now());
    let there = stage.store.nouns(&stage.namespace, Hint::KIND, Direction::Next, None, 10).await.unwrap();
    assert_eq!(there, std::slice::from_ref(&rewritten));

    assert_eq!(ask(&stage, "n", Ask::Delete).await, Ok(rewritten));
    assert_eq!(ask(&stage, "n", Ask::Delete).await, Err(NounRejection::NotFound(made.key)));
    assert!(listed(&stage, Direction::Next, None, 10).await.is_empty());
    ask(&stage, "n", Ask::Create("three")).await.unwrap();
}

pub async fn nouns_are_listed_by_their_ids_both_ways_and_by_kind(stage: Stage) {
    for id in ["b", "a", "d", "C", "ä"] {
        ask(&stage, id, Ask::Create("said")).await.unwrap();
    }
    let ids = |rows: Vec<(Name, String)>| rows.into_iter().map(|(id, _)| id).collect::<Vec<Name>>();
    let names = |ids: &[&str]| ids.iter().map(|id| Name::from(*id)).collect::<Vec<Name>>();

    assert_eq!(ids(listed(&stage, Direction::Next, None, 3).await), names(&["C", "a", "b"]));
    assert_eq!(ids(listed(&stage, Direction::Next, Some("b"), 3).await), names(&["d", "ä"]));
    assert_eq!(ids(listed(&stage, Direction::Prev, Some("d"), 2).await), names(&["b", "a"]));
    assert_eq!(ids(listed(&stage, Direction::Prev, None, 2).await), names(&["ä", "d"]));
    let other = stage.store.nouns(&stage.namespace, "other", Direction::Next, None, 9).await.unwrap();
    assert!(other.is_empty());
    let elsewhere = stage.store.nouns(&"elsewhere".into(), Hint::KIND, Direction::Next, None, 9).await;
    assert!(elsewhere.unwrap().is_empty());
}

pub async fn a_disabled_namespace_takes_no_new_noun_and_answers_repeats(stage: Stage) {
    let made = ask(&stage, "n", Ask::Create("one")).await.unwrap();
    let by = kagzi_model::NamespaceCommand::Disable { by: "ann".into(), note: "unpaid".into() };
    stage.change(by).await.unwrap();

    let refused = ask(&stage, "m", Ask::Create("one")).await;

    let is_refused = matches!(refused, Err(NounRejection::NotAdmitted(Rejection::NamespaceDisabled { .. })));
    assert!(is_refused, "{refused:?}");
    assert_eq!(ask(&stage, "n", Ask::Create("one")).await, Ok(made));
}
