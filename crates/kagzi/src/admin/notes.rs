//! Notes: where people find what to do about the runs of a workflow type.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::Admin;
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Where people find what to do about the runs of a workflow type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Whose runs it is about.
    pub workflow_type: String,
    /// Where it stands.
    pub link: String,
    /// Whom to ask; may be empty.
    pub owner: String,
}

impl Note {
    fn from_proto(proto: v1::Note) -> Note {
        let v1::Note { workflow_type, link, owner, .. } = proto;
        Note { workflow_type, link, owner }
    }
}

impl Admin {
    /// Keeps a note. Another one of the same workflow type is refused with ALREADY_EXISTS.
    ///
    /// ```no_run
    /// # async fn keep(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
    /// let kept = admin.create_note("refund", "https://wiki.example/refund", "payments").await?;
    /// assert_eq!((kept.workflow_type, kept.owner), ("refund".to_owned(), "payments".to_owned()));
    /// admin.delete_note("refund").await?;
    /// # Ok(()) }
    /// ```
    pub async fn create_note(
        &self,
        workflow_type: impl Into<String>,
        link: impl Into<String>,
        owner: impl Into<String>,
    ) -> Result<Note, Error> {
        let request = v1::CreateNoteRequest {
            namespace_id: self.namespace_id(),
            workflow_type: workflow_type.into(),
            link: link.into(),
            owner: owner.into(),
        };
        let answer = rpc!(self.client(), Admins.create_note, Safe, "keep a note", request)?;
        Ok(Note::from_proto(answer.note.unwrap_or_default()))
    }

    /// The notes of the namespace, by workflow type. Nothing is asked yet.
    pub fn notes(&self) -> Notes {
        let request = v1::ListNotesRequest { namespace_id: self.namespace_id(), ..Default::default() };
        Notes { client: self.client().clone(), request }
    }

    /// Deletes a note.
    pub async fn delete_note(&self, workflow_type: impl Into<String>) -> Result<(), Error> {
        let request =
            v1::DeleteNoteRequest { namespace_id: self.namespace_id(), workflow_type: workflow_type.into() };
        rpc!(self.client(), Admins.delete_note, Unsafe, "delete a note", request).map(drop)
    }
}

/// Notes that are being asked for, by workflow type.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = admin.notes().page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all, streamed);
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct Notes {
    client: Client,
    request: v1::ListNotesRequest,
}

impl Notes {
    /// Notes per page, at most 1000. Default: 50.
    pub fn page_size(mut self, notes: u16) -> Self {
        self.request.page_size = notes.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Note>, Error> {
        let request = v1::ListNotesRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_notes, Safe, "list notes", request)?;
        let notes = page.notes.into_iter().map(Note::from_proto).collect();
        let list = Page::new(notes, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All notes, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Note, Error>> + Send {
        page::stream(self, |notes, token| async move { notes.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Note>, Error> {
        page::all(self.clone().stream()).await
    }
}
