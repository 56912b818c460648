//! Reading and answering one question, and what else people do with it.

use std::time::Duration;

use kagzi_proto::v1::{self, answer_intervention_request::Answer};
use serde::Serialize;
use uuid::Uuid;

use super::{Inbox, Notice, Question};
use crate::client::wire::rpc;
use crate::error::Error;
use crate::retry_policy::millis;

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answered {
    /// The question as it is now.
    pub question: Question,
    /// The run was told; else it is one vote of several.
    pub decided: bool,
    /// Votes of this kind so far, and how many decide, where it is not decided.
    pub votes: (u32, u32),
}

/// How an answer is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    note: String,
    force: bool,
    edited: String,
}

impl Inbox {
    /// One question, with what people were told about it.
    ///
    /// ```no_run
    /// # async fn look(client: kagzi::Client, id: &str) -> anyhow::Result<()> {
    /// let (question, notices) = client.inbox("ada").question(id).await?;
    /// println!("{} was told to {} people", question.title, notices.len());
    /// # Ok(()) }
    /// ```
    pub async fn question(&self, id: impl Into<String>) -> Result<(Question, Vec<Notice>), Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let request = v1::GetInterventionRequest { namespace_id, intervention_id };
        let found = rpc!(self.client, Interventions.get_intervention, Safe, "read a question", request)?;
        let notices = found.notices.into_iter().map(Notice::from_proto).collect();
        Ok((Question::from_proto(found.intervention.unwrap_or_default()), notices))
    }

    /// Approves, with a note for the others.
    ///
    /// ```no_run
    /// # async fn answer(client: kagzi::Client, id: &str) -> anyhow::Result<()> {
    /// let inbox = client.inbox("ada");
    /// let answered = inbox.approve(id, "looks fine").await?;
    /// println!("decided: {}", answered.decided);
    /// // Whatever the question wants, one of these answers it.
    /// inbox.approve_edited(id, &25, "not more").await?;
    /// inbox.reject(id, "no").await?;
    /// inbox.choose(id, "post", "cheaper").await?;
    /// inbox.give(id, &"Delhi", "").await?;
    /// inbox.complete(id, "session 4711").await?;
    /// inbox.forced().approve(id, true, "bob is on holiday").await?;
    /// inbox.forced().choose(id, "post", "").await?;
    /// inbox.forced().give(id, &"Delhi", "").await?;
    /// # Ok(()) }
    /// ```
    pub async fn approve(&self, id: impl Into<String>, note: impl Into<String>) -> Result<Answered, Error> {
        let how = How { note: note.into(), ..How::default() };
        self.answer(id.into(), Answer::Approved(true), how).await
    }

    /// Approves other arguments than were shown, where the question allows it.
    pub async fn approve_edited<T: Serialize + ?Sized>(
        &self,
        id: impl Into<String>,
        arguments: &T,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let edited = to_json(arguments)?;
        let how = How { note: note.into(), edited, ..How::default() };
        self.answer(id.into(), Answer::Approved(true), how).await
    }

    /// Rejects, with a note for the others.
    pub async fn reject(&self, id: impl Into<String>, note: impl Into<String>) -> Result<Answered, Error> {
        let how = How { note: note.into(), ..How::default() };
        self.answer(id.into(), Answer::Approved(false), how).await
    }

    /// Chooses an option of a decision.
    pub async fn choose(
        &self,
        id: impl Into<String>,
        option: impl Into<String>,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let how = How { note: note.into(), ..How::default() };
        self.answer(id.into(), Answer::OptionId(option.into()), how).await
    }

    /// Gives the data that an input asks for. What does not fit its schema is refused, with the place of
    /// each mistake.
    pub async fn give<T: Serialize + ?Sized>(
        &self,
        id: impl Into<String>,
        data: &T,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let how = How { note: note.into(), ..How::default() };
        self.answer(id.into(), Answer::Data(to_json(data)?), how).await
    }

    /// Says that something was done by hand, and what proves it.
    pub async fn complete(&self, id: impl Into<String>, proof: impl Into<String>) -> Result<Answered, Error> {
        self.answer(id.into(), Answer::Proof(proof.into()), How::default()).await
    }

    /// The same inbox, whose answers count although somebody else works on a question, or one is not asked.
    /// It is written down.
    pub fn forced(&self) -> ForcedInbox {
        ForcedInbox(self.clone())
    }

    async fn answer(&self, id: String, answer: Answer, how: How) -> Result<Answered, Error> {
        let (namespace_id, intervention_id) = self.named(id);
        let request = v1::AnswerInterventionRequest {
            namespace_id,
            intervention_id,
            by: self.person.clone(),
            // Sent again after an answer that was lost, it is the same.
            answer_id: Uuid::now_v7().to_string(),
            answer: Some(answer),
            edited: how.edited,
            note: how.note,
            expected_version: None,
            force: how.force,
        };
        let answer = rpc!(self.client, Interventions.answer_intervention, Safe, "answer", request)?;
        Ok(Answered {
            question: Question::from_proto(answer.intervention.unwrap_or_default()),
            decided: answer.decided,
            votes: (answer.votes, answer.votes_needed),
        })
    }

    /// Says that one works on it: others are told so for five minutes. Again, it lasts longer.
    ///
    /// ```no_run
    /// # async fn work(client: kagzi::Client, id: &str) -> anyhow::Result<()> {
    /// use std::time::Duration;
    ///
    /// let inbox = client.inbox("ada");
    /// println!("{} works on it", inbox.person());
    /// inbox.claim(id).await?;
    /// inbox.comment(id, "I ask the customer first").await?;
    /// inbox.snooze(id, Duration::from_secs(3600)).await?;
    /// inbox.release(id).await?;
    /// inbox.assign(id, &["bob", "group:finance"]).await?;
    /// inbox.cancel(id, "the order was withdrawn").await?;
    /// # Ok(()) }
    /// ```
    pub async fn claim(&self, id: impl Into<String>) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let by = self.person.clone();
        let request = v1::ClaimInterventionRequest { namespace_id, intervention_id, by };
        let answer = rpc!(self.client, Interventions.claim_intervention, Safe, "claim", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    /// Takes that back.
    pub async fn release(&self, id: impl Into<String>) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let by = self.person.clone();
        let request = v1::ReleaseInterventionRequest { namespace_id, intervention_id, by };
        let answer = rpc!(self.client, Interventions.release_intervention, Safe, "release", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    /// Asks these people and groups instead.
    pub async fn assign(&self, id: impl Into<String>, to: &[&str]) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let (by, assignees) = (self.person.clone(), to.iter().map(|name| (*name).to_owned()).collect());
        let request = v1::ReassignInterventionRequest { namespace_id, intervention_id, by, assignees };
        let answer = rpc!(self.client, Interventions.reassign_intervention, Safe, "assign", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    /// Does not want to see it for so long: [`Question::snoozed_by`].
    pub async fn snooze(&self, id: impl Into<String>, duration: Duration) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let (by, duration_ms) = (self.person.clone(), millis(duration));
        let request = v1::SnoozeInterventionRequest { namespace_id, intervention_id, by, duration_ms };
        let answer = rpc!(self.client, Interventions.snooze_intervention, Safe, "snooze", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    /// Says something about it to the others.
    pub async fn comment(&self, id: impl Into<String>, text: impl Into<String>) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let (by, text) = (self.person.clone(), text.into());
        let request = v1::CommentInterventionRequest { namespace_id, intervention_id, by, text };
        // Sent twice it would be said twice.
        let answer = rpc!(self.client, Interventions.comment_intervention, Unsafe, "comment", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    /// Takes the question back: the wait of its run fails with the code `QUESTION_CANCELLED`.
    pub async fn cancel(&self, id: impl Into<String>, reason: impl Into<String>) -> Result<Question, Error> {
        let (namespace_id, intervention_id) = self.named(id.into());
        let (by, reason) = (self.person.clone(), reason.into());
        let request = v1::CancelInterventionRequest { namespace_id, intervention_id, by, reason };
        let answer = rpc!(self.client, Interventions.cancel_intervention, Safe, "cancel", request)?;
        Ok(Question::from_proto(answer.intervention.unwrap_or_default()))
    }

    pub(super) fn named(&self, id: String) -> (String, String) {
        (self.client.namespace_id().to_owned(), id)
    }
}

/// Answers that count although somebody else works on the question, or one is not asked. Made by
/// [`Inbox::forced`].
#[derive(Clone)]
pub struct ForcedInbox(Inbox);

impl ForcedInbox {
    /// Approves or rejects.
    pub async fn approve(
        &self,
        id: impl Into<String>,
        approved: bool,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let how = How { note: note.into(), force: true, ..How::default() };
        self.0.answer(id.into(), Answer::Approved(approved), how).await
    }

    /// Chooses an option of a decision.
    pub async fn choose(
        &self,
        id: impl Into<String>,
        option: impl Into<String>,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let how = How { note: note.into(), force: true, ..How::default() };
        self.0.answer(id.into(), Answer::OptionId(option.into()), how).await
    }

    /// Gives the data that an input asks for.
    pub async fn give<T: Serialize + ?Sized>(
        &self,
        id: impl Into<String>,
        data: &T,
        note: impl Into<String>,
    ) -> Result<Answered, Error> {
        let how = How { note: note.into(), force: true, ..How::default() };
        self.0.answer(id.into(), Answer::Data(to_json(data)?), how).await
    }
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let unencodable =
        |error: serde_json::Error| Error::Encode { what: "the answer", message: error.to_string() };
    serde_json::to_string(value).map_err(unencodable)
}
