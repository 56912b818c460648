//! An observer that remembers what it was told.

use kagzi_model::{RunId, Timestamp};
use kagzi_store::{Finished, LostLease, Observer, SignalNotice};
use tokio::sync::{
    Mutex,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::stage::{in_time, unversioned};

/// Both kinds of news, in the order in which they came.
pub struct Recorder {
    finished: News<Finished>,
    lost: News<LostLease>,
    schedules: News<(Timestamp, bool)>,
    notices: News<SignalNotice>,
}

struct News<T> {
    send: UnboundedSender<T>,
    received: Mutex<UnboundedReceiver<T>>,
}

impl<T> News<T> {
    fn new() -> Self {
        let (send, received) = unbounded_channel();
        News { send, received: Mutex::new(received) }
    }

    fn put(&self, news: T) {
        self.send.send(news).expect("the receiver lives beside the sender");
    }

    async fn next(&self, what: &str, wanted: impl Fn(&T) -> bool) -> T {
        let mut received = self.received.lock().await;
        in_time(what, async {
            loop {
                let news = received.recv().await.expect("the sender lives beside the receiver");
                if wanted(&news) {
                    return news;
                }
            }
        })
        .await
    }

    async fn left(&self, wanted: impl Fn(&T) -> bool) -> usize {
        let mut received = self.received.lock().await;
        let mut count = 0;
        while let Ok(news) = received.try_recv() {
            count += usize::from(wanted(&news));
        }
        count
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { finished: News::new(), lost: News::new(), schedules: News::new(), notices: News::new() }
    }
}

impl Recorder {
    /// Waits until the end of this run is told.
    pub async fn finished(&self, run: RunId) -> Finished {
        let told = self.finished.next("the end of a run", |news| news.run.id == run).await;
        Finished { run: unversioned(told.run), ..told }
    }

    /// Waits until it is told that this run's lease was taken away.
    pub async fn lost(&self, run: RunId) -> LostLease {
        self.lost.next("a lost lease", |news| news.run == run).await
    }

    /// Waits until it is told when a schedule is due, and whether a person changed one.
    pub async fn schedule_due(&self) -> (Timestamp, bool) {
        self.schedules.next("a schedule", |_| true).await
    }

    /// Waits until it is told that something has come for this run.
    pub async fn signalled(&self, run: RunId) -> SignalNotice {
        self.notices.next("a signal", |news| news.run == run).await
    }

    /// How often the end of this run was told since the last look.
    pub async fn finished_left(&self, run: RunId) -> usize {
        self.finished.left(|news| news.run.id == run).await
    }

    /// How often a lost lease of this run was told since the last look.
    pub async fn lost_left(&self, run: RunId) -> usize {
        self.lost.left(|news| news.run == run).await
    }
}

impl Observer for Recorder {
    fn finished(&self, finished: Finished) {
        self.finished.put(finished);
    }

    fn lease_lost(&self, lost: LostLease) {
        self.lost.put(lost);
    }

    fn signalled(&self, notice: SignalNotice) {
        self.notices.put(notice);
    }

    fn schedule_due(&self, at: Timestamp, changed: bool) {
        self.schedules.put((at, changed));
    }
}
