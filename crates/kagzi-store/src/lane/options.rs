//! Bounds of a lane.

/// Bounds of a lane.
#[derive(Debug, Clone, Copy)]
pub struct LaneOptions {
    /// Messages that may wait; senders beyond it wait too.
    pub queue_len_max: usize,
    /// Commands folded into one commit (a request with more is not split), and runs claimed in it. Everybody
    /// waits for the commit that is under way, so its length is what a neighbour feels of a crowd; at 256 the
    /// fsync is below a tenth of its cost.
    pub batch_len_max: usize,
    /// The same while runs wait for workers. While a backlog exists, a client with one run in flight waits
    /// for commits full of other people's runs, so they are kept short. With 64 commands and 32 claims the
    /// p99 of such a client was 33 to 42 ms while 10,000 sleepers woke (39 to 69 with 256 and 128). For every
    /// turn, 64 would cost a tenth of the throughput of w3 (bench/RESULTS.md).
    pub crowd_len_max: usize,
    /// Twice as many where as many leases end in the same turn.
    pub claim_len_max: usize,
    /// Other servers write to the same database: look for their work this often, even unasked.
    pub shared_poll_ms: Option<i64>,
    /// Events of a higher level are not written: a server of the version before would not understand them.
    pub kinds_level: u8,
}

impl Default for LaneOptions {
    fn default() -> Self {
        LaneOptions {
            queue_len_max: 4096,
            batch_len_max: 256,
            crowd_len_max: 64,
            claim_len_max: 32,
            shared_poll_ms: None,
            kinds_level: kagzi_model::EventKind::LEVEL,
        }
    }
}
