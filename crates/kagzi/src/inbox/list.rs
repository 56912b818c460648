//! `inbox.questions()`: lists of questions, filtered, one page at a time or all.

use futures_util::Stream;
use kagzi_proto::v1;

use super::{Inbox, Question, QuestionState};
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Questions that are being asked for, the most urgent first; those that are open, unless told otherwise.
///
/// ```no_run
/// # async fn list(client: kagzi::Client) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
/// use kagzi::inbox::QuestionState;
///
/// let list = client.inbox("ada").questions().mine().page_size(20).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// let closed = client.inbox("ada").questions().state(QuestionState::Expired).run("0198c0de");
/// println!("{}", closed.assigned_to("group:ops").all().await?.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..) or .all()"]
#[derive(Clone)]
pub struct Questions {
    inbox: Inbox,
    request: v1::ListInterventionsRequest,
}

impl Inbox {
    /// Lists questions, filtered. Nothing is asked before [`Questions::page`] or [`Questions::all`].
    pub fn questions(&self) -> Questions {
        let namespace_id = self.client.namespace_id().to_owned();
        let request = v1::ListInterventionsRequest { namespace_id, ..Default::default() };
        Questions { inbox: self.clone(), request }
    }
}

impl Questions {
    /// Those of the inbox's person: by name, by group, and what everybody is asked.
    pub fn mine(mut self) -> Self {
        self.request.mine = self.inbox.person.clone();
        self
    }

    /// Those that this person or group is asked. Called several times, any of them.
    pub fn assigned_to(mut self, name: impl Into<String>) -> Self {
        self.request.assignees.push(name.into());
        self
    }

    /// In this state. Called several times, in any of them.
    pub fn state(mut self, state: QuestionState) -> Self {
        self.request.states.push(state.to_wire().into());
        self
    }

    /// Those of this run.
    pub fn run(mut self, run_id: impl Into<String>) -> Self {
        self.request.run_id = run_id.into();
        self
    }

    /// Questions per page, at most 1000. Default: 50.
    pub fn page_size(mut self, questions: u16) -> Self {
        self.request.page_size = questions.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Question>, Error> {
        let request = v1::ListInterventionsRequest { page_token: token.into(), ..self.request.clone() };
        let client = &self.inbox.client;
        let page = rpc!(client, Interventions.list_interventions, Safe, "list questions", request)?;
        let rows = page.interventions.into_iter().map(Question::from_proto).collect();
        let list = Page::new(rows, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All of them, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Question, Error>> + Send {
        page::stream(self, |questions, token| async move { questions.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Question>, Error> {
        page::all(self.clone().stream()).await
    }
}
