//! What runs ask people, for whoever shows or answers it.
//!
//! | to | see |
//! |---|---|
//! | list the questions of a person | [`Inbox::questions`] |
//! | read one | [`Inbox::question`] |
//! | answer it | [`Inbox::approve`], [`Inbox::choose`], [`Inbox::give`] |
//! | say how people are reached | [`Inbox::put_contact`] |

mod answers;
mod contacts;
mod list;
mod question;

pub use answers::{Answered, ForcedInbox};
pub use contacts::Contact;
pub use list::Questions;
pub use question::{Comment, Notice, Question, QuestionOption, QuestionState, QuestionType, Vote};

use crate::client::Client;

/// The inbox of a namespace, on behalf of one person: made by [`Client::inbox`].
///
/// ```no_run
/// # async fn look(client: kagzi::Client) -> anyhow::Result<()> {
/// let inbox = client.inbox("ada");
/// assert_eq!(inbox.person(), "ada");
/// for question in inbox.questions().mine().all().await? {
///     println!("{} {} {}", question.id, question.title, question.run_id);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Inbox {
    client: Client,
    person: String,
}

impl Client {
    /// The inbox, on behalf of this person. Nobody proves who he is yet: the name is written down as it
    /// comes.
    pub fn inbox(&self, person: impl Into<String>) -> Inbox {
        Inbox { client: self.clone(), person: person.into() }
    }
}

impl Inbox {
    /// On whose behalf.
    pub fn person(&self) -> &str {
        &self.person
    }
}
