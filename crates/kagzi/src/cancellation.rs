//! A sign that something should end.

use tokio_util::sync::CancellationToken as Token;

/// A sign that something should end: a worker ([`Worker::shutdown_token`](crate::Worker::shutdown_token)), or
/// what a step started elsewhere ([`StepContext::cancellation`](crate::StepContext::cancellation)). Clones
/// share one sign.
///
/// ```
/// # #[tokio::main]
/// # async fn main() {
/// use kagzi::worker::CancellationToken;
///
/// let stop = CancellationToken::new();
/// let heard = stop.clone();
/// let working = tokio::spawn(async move { heard.cancelled().await });
/// assert!(!stop.is_cancelled());
/// stop.cancel();
/// working.await.unwrap();
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Token);

impl CancellationToken {
    /// A sign that was not given yet.
    pub fn new() -> CancellationToken {
        CancellationToken::default()
    }

    /// Gives the sign, to all clones and for good.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether the sign was given.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns when the sign is given.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    pub(crate) fn token(&self) -> &Token {
        &self.0
    }

    pub(crate) fn of(token: Token) -> CancellationToken {
        CancellationToken(token)
    }
}
