//! `ctx.gather`: many branches at once, and rules for when there are enough of them.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::run::context::WorkflowContext;

impl WorkflowContext {
    /// Executes branches beside each other and waits for all of them, or for enough of them. A branch is any
    /// future of the function: a step, a sleep, a wait, a child, or an `async` block with several. The result
    /// never is an error by itself: it says by index how each branch ended.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn quotes(ctx: WorkflowContext, shops: Vec<String>) -> anyhow::Result<Vec<u64>> {
    ///     let asked = shops.into_iter().map(|shop| {
    ///         let code = async move { Ok(shop.len() as u64) };
    ///         ctx.run("ask", code)
    ///     });
    ///     let quotes = ctx.gather(asked).at_once(5).enough(3).await;
    ///     Ok(quotes.into_values())
    /// }
    /// ```
    pub fn gather<T, F>(&self, branches: impl IntoIterator<Item = F>) -> Gather<F>
    where
        F: Future<Output = anyhow::Result<T>> + Send,
    {
        Gather { branches: branches.into_iter().collect(), rules: Rules::default() }
    }
}

/// Branches that are to be gathered, made by [`WorkflowContext::gather`]. Await it.
#[must_use = "branches do nothing unless they are awaited"]
pub struct Gather<F> {
    branches: Vec<F>,
    rules: Rules,
}

#[derive(Default)]
struct Rules {
    at_once: Option<usize>,
    enough: Option<usize>,
    tolerated: Option<usize>,
}

impl<F> Gather<F> {
    /// Begins at most so many branches at once, in their order; the next one begins when one has ended. 0 is
    /// read as 1.
    pub fn at_once(mut self, branches: usize) -> Self {
        self.rules.at_once = Some(branches.max(1));
        self
    }

    /// Ends after so many successes. The other branches are dropped: nothing of them is executed again.
    pub fn enough(mut self, successes: usize) -> Self {
        self.rules.enough = Some(successes);
        self
    }

    /// Ends when more branches than this have failed, and drops the others. Unless it is said, all branches
    /// may fail.
    pub fn tolerate(mut self, failures: usize) -> Self {
        self.rules.tolerated = Some(failures);
        self
    }

    /// The same as a share of all branches, rounded down: of 30 branches 10 percent are 3.
    pub fn tolerate_percent(self, percent: u32) -> Self {
        let failures = (self.branches.len() as u64 * u64::from(percent)) / 100;
        self.tolerate(usize::try_from(failures).unwrap_or(usize::MAX))
    }
}

impl<T, F: Future<Output = anyhow::Result<T>> + Send> IntoFuture for Gather<F> {
    type Output = Gathered<T>;
    type IntoFuture = Gathering<T, F>;

    fn into_future(self) -> Gathering<T, F> {
        let results = self.branches.iter().map(|_| None).collect();
        let gathered = Gathered { results, end: GatherEnd::All };
        Gathering {
            waiting: self.branches.into_iter().enumerate(),
            running: FuturesUnordered::new(),
            gathered,
            successes: 0,
            failures: 0,
            rules: self.rules,
        }
    }
}

/// How the branches of a [`Gather`] ended.
#[derive(Debug)]
pub struct Gathered<T> {
    /// By index. `None`: the branch was dropped, or it never began, because the others had decided.
    pub results: Vec<Option<anyhow::Result<T>>>,
    /// Why nothing more is waited for.
    pub end: GatherEnd,
}

/// Why a [`Gather`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatherEnd {
    /// Every branch has ended.
    All,
    /// There were enough successes.
    Enough,
    /// More branches have failed than are tolerated.
    TooManyFailures,
}

impl<T> Gathered<T> {
    /// How many branches have succeeded.
    pub fn successes(&self) -> usize {
        self.results.iter().flatten().filter(|result| result.is_ok()).count()
    }

    /// How many branches have failed.
    pub fn failures(&self) -> usize {
        self.results.iter().flatten().filter(|result| result.is_err()).count()
    }

    /// What succeeded, in the order of the branches.
    pub fn into_values(self) -> Vec<T> {
        self.results.into_iter().flatten().filter_map(Result::ok).collect()
    }

    /// What succeeded, in the order of the branches, or the error of the first branch that failed if more of
    /// them have failed than were tolerated.
    ///
    /// # Errors
    /// [`GatherEnd::TooManyFailures`].
    pub fn into_result(self) -> anyhow::Result<Vec<T>> {
        if self.end == GatherEnd::TooManyFailures {
            let failed = self.results.into_iter().flatten().find_map(Result::err);
            return Err(failed.unwrap_or_else(|| anyhow::anyhow!("too many branches have failed")));
        }
        Ok(self.into_values())
    }
}

/// A [`Gather`] that is awaited.
#[must_use = "branches do nothing unless they are awaited"]
pub struct Gathering<T, F> {
    waiting: std::iter::Enumerate<std::vec::IntoIter<F>>,
    running: FuturesUnordered<Branch<F>>,
    gathered: Gathered<T>,
    successes: usize,
    failures: usize,
    rules: Rules,
}

/// What is pinned is in boxes.
impl<T, F> Unpin for Gathering<T, F> {}

struct Branch<F> {
    index: usize,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Branch<F> {
    type Output = (usize, F::Output);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index;
        self.future.as_mut().poll(cx).map(|ended| (index, ended))
    }
}

impl<T, F> Gathering<T, F> {
    fn is_decided(&self) -> Option<GatherEnd> {
        if self.rules.enough.is_some_and(|enough| self.successes >= enough) {
            return Some(GatherEnd::Enough);
        }
        let intolerable = self.rules.tolerated.is_some_and(|tolerated| self.failures > tolerated);
        intolerable.then_some(GatherEnd::TooManyFailures)
    }

    /// Drops what is left.
    fn end(&mut self, end: GatherEnd) -> Gathered<T> {
        self.running = FuturesUnordered::new();
        self.waiting = Vec::new().into_iter().enumerate();
        let results = std::mem::take(&mut self.gathered.results);
        Gathered { results, end }
    }
}

impl<T, F: Future<Output = anyhow::Result<T>> + Send> Future for Gathering<T, F> {
    type Output = Gathered<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Gathered<T>> {
        let this = &mut *self;
        loop {
            if let Some(end) = this.is_decided() {
                return Poll::Ready(this.end(end));
            }
            while this.rules.at_once.is_none_or(|at_once| this.running.len() < at_once)
                && let Some((index, branch)) = this.waiting.next()
            {
                this.running.push(Branch { index, future: Box::pin(branch) });
            }
            let (index, ended) = match this.running.poll_next_unpin(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(this.end(GatherEnd::All)),
                Poll::Ready(Some(ended)) => ended,
            };
            match &ended {
                Ok(_) => this.successes += 1,
                Err(_) => this.failures += 1,
            }
            if let Some(result) = this.gathered.results.get_mut(index) {
                *result = Some(ended);
            }
        }
    }
}
