//! Every metric there is: the page, `docs/metrics.md`, the dashboard and the alerts are checked against this
//! list.

/// A metric, as it is documented.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*]: $help:literal,)+) => {
        $(pub const $constant: Metric =
            Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)+

        /// In the order of the page.
        #[cfg(test)]
        pub const ALL: &[&Metric] = &[$(&$constant),+];
    };
}

metrics! {
    READY = Gauge "kagzi_ready" []: "1 when the store answers and commits, as /readyz says",
    BUILD = Gauge "kagzi_build_info" ["version"]: "Always 1; the label names the version",
    UPTIME = Gauge "kagzi_uptime_seconds" []: "Time since the start",
    QUEUE_READY = Gauge "kagzi_queue_ready" ["namespace", "queue"]: "Runs that are due and wait for a worker",
    QUEUE_READY_AGE = Gauge "kagzi_queue_ready_age_seconds" ["namespace", "queue"]:
        "How long the oldest of them has waited",
    QUEUE_WAITING = Gauge "kagzi_queue_waiting" ["namespace", "queue"]: "Runs that sleep or wait for a retry",
    WAITS_OPEN = Gauge "kagzi_waits_open" ["namespace", "kind"]:
        "Runs that are parked, by what they wait for: timer, signal (promises and requests too), child",
    QUEUE_LEASED = Gauge "kagzi_queue_leased" ["namespace", "queue"]: "Runs that workers hold",
    WORKERS = Gauge "kagzi_workers" ["namespace", "status"]: "Workers in the registry",
    WORKER_STREAMS = Gauge "kagzi_worker_streams" []: "Workers connected to this server",
    SAMPLE_ERRORS = Counter "kagzi_sample_errors_total" []:
        "Times that queues and workers could not be counted; their gauges are then missing",
    RUNS_FINISHED = Counter "kagzi_runs_finished_total" ["outcome"]: "Runs ended through this server, by \
        outcome",
    SCHEDULE_TO_START = Histogram "kagzi_schedule_to_start_seconds" []: "From ready to leased",
    TIMER_LAG = Histogram "kagzi_timer_lag_seconds" []: "From the time that a sleep or retry was due to the \
        lease",
    SCHEDULE_FIRES = Counter "kagzi_schedule_fires_total" []: "Runs that schedules started, backfills \
        included",
    SCHEDULE_LATENESS = Histogram "kagzi_schedule_lateness_seconds" []:
        "From the time that a schedule's run was due to its start; buffered times and backfills are not in \
         it",
    SCHEDULE_SKIPPED = Counter "kagzi_schedule_skipped_total" ["reason"]:
        "Times that schedules left out: overlap = an earlier run was still going, missed = more were missed \
         than max_catchup",
    SCHEDULE_BUFFERED = Counter "kagzi_schedule_buffered_total" []: "Times that had to wait for the run \
        before them",
    STEP_RETRIES = Counter "kagzi_step_retries_total" []: "Attempts of steps that failed and are retried",
    RUN_RETRIES = Counter "kagzi_run_retries_total" []:
        "Executions of runs that failed, or lost their worker, and are repeated",
    LEASES = Counter "kagzi_leases_total" []: "Runs given to workers",
    LEASES_LOST = Counter "kagzi_leases_lost_total" []: "Leases taken away: lost workers, cancels, deadlines",
    STALE_WRITES = Counter "kagzi_stale_writes_refused_total" []: "Writes refused because their lease was \
        lost",
    SIGNALS = Counter "kagzi_signals_total" ["outcome"]:
        "Signals sent to runs: told, repeated, full (the run has not taken 1,000 others), refused (it or the \
        channel takes no more)",
    NOTICES = Counter "kagzi_notices_total" ["channel", "outcome"]:
        "Tries to tell somebody something: sent, retrying, given_up, held (by quiet hours)",
    NOTICE_OVERDUE = Gauge "kagzi_notice_overdue_seconds" []:
        "How long the message to a person has been due that nobody has tried to send for longest",
    PUBLISHED = Counter "kagzi_published_events_total" ["outcome"]:
        "Events that were to be published: kept, repeated (the id is known), refused",
    DELIVERED = Counter "kagzi_delivered_events_total" []: "How often a run was told of a published event",
    EXPIRED = Counter "kagzi_expired_events_total" []: "Published events that were deleted after their time",
    TRIGGER_RUNS = Counter "kagzi_trigger_runs_total" []: "Runs that triggers started",
    COMMANDS = Counter "kagzi_commands_total" []: "Commands decided",
    REFUSED = Counter "kagzi_commands_refused_total" []: "Commands refused",
    EVENTS = Counter "kagzi_events_total" []: "Lines of history written",
    COMMITS = Counter "kagzi_commits_total" []: "Transactions committed, each with one fsync",
    COMMANDS_PER_COMMIT = Histogram "kagzi_commands_per_commit" []: "Commands that shared one commit",
    COMMIT_TIME = Histogram "kagzi_commit_seconds" []: "Loading, writing and committing one batch",
    COMMIT_ERRORS = Counter "kagzi_commit_errors_total" []: "Batches not committed",
    CONFLICTS = Counter "kagzi_commit_conflicts_total" []:
        "Batches repeated because another server wrote first",
    LANE_QUEUE = Gauge "kagzi_lane_queue_messages" []: "Requests that waited for the next commit at the \
        newest one",
    ROUND_TRIPS = Counter "kagzi_database_round_trips_total" []:
        "Times that the writer waited for an answer of PostgreSQL; 0 on embedded storage",
    RUNS_LOADED = Counter "kagzi_runs_loaded_total" []: "Runs read from the database because memory did not \
        have them",
    EVENTS_LOADED = Counter "kagzi_events_loaded_total" []: "Lines of their histories",
    REPLAY_EVENTS = Counter "kagzi_replay_events_read_total" []: "Events read to hand runs over to workers",
    TAKEN_APART = Counter "kagzi_batches_taken_apart_total" []:
        "Batches with a command that the database refused, so that only this one was refused",
    SET_ASIDE = Gauge "kagzi_set_aside_rows" ["kind"]:
        "Rows that this server cannot read and leaves alone; kagzi doctor names them",
    SWEEP_ROUNDS = Counter "kagzi_sweep_rounds_total" ["sweep"]: "Rounds of housekeeping, by kind",
    SWEEP_ERRORS = Counter "kagzi_sweep_errors_total" ["sweep"]: "Rounds that failed and are tried again",
    RETENTION_RUNS = Counter "kagzi_retention_runs_deleted_total" []:
        "Finished runs that were deleted because they were past their retention",
    RETENTION_EVENTS = Counter "kagzi_retention_events_deleted_total" []:
        "Rows of their histories that were deleted; a row has what one commit added",
    RETENTION_BATCHES = Counter "kagzi_retention_batches_total" []:
        "Commits that deleted them, each at most a hundred runs and 2,000 rows",
    DATABASE_DAMAGED = Gauge "kagzi_database_damaged" []:
        "1 from the moment that the database's file was found damaged: no more work is taken",
    OLDEST_TRANSACTION = Gauge "kagzi_database_oldest_transaction_seconds" []:
        "How long the oldest transaction of the PostgreSQL database has been open, as far as Kagzi's role \
         may see others",
    DATABASE_PING = Gauge "kagzi_database_ping_seconds" []: "The last read that asked for nothing",
    RPC_CALLS = Counter "kagzi_rpc_calls_total" ["method", "code"]:
        "Calls that ended, by the code of their answer; CANCELLED = the caller left. Health and reflection \
         are `other`",
    RPC_TIME = Histogram "kagzi_rpc_seconds" ["method"]:
        "From a call's head to the beginning of its answer; polls and waits wait on purpose",
    RPC_OPEN = Gauge "kagzi_rpc_open" ["kind"]: "Calls and streams that are not over",
    RPC_RECEIVED = Counter "kagzi_rpc_received_bytes_total" []: "Bytes of requests",
    RPC_SENT = Counter "kagzi_rpc_sent_bytes_total" []: "Bytes of answers",
    HTTP_REFUSED = Counter "kagzi_http_refused_total" ["reason"]:
        "Requests that were turned away: protocol = not gRPC over HTTP/2, host = under a name that is not \
         the server's",
    CONNECTIONS = Gauge "kagzi_connections" []: "Connections that are open",
    CONNECTIONS_CLOSED = Counter "kagzi_connections_refused_total" ["reason"]:
        "Connections closed by the server: full = server.connections_max, silent = server.greeting_timeout",
    ACCEPT_ERRORS = Counter "kagzi_accept_errors_total" []:
        "Times that the system could not give a connection, such as at the limit of open files",
    CLOCK_SKEW = Gauge "kagzi_clock_skew_seconds" []:
        "How far the clock that decides is ahead of this machine's: PostgreSQL's, or one that waits for a \
         clock that was set back",
    CLOCK_LEAPS = Counter "kagzi_clock_leaps_total" []:
        "How often time leapt forward because the machine was suspended or a clock was set",
}

/// The generated part of docs/metrics.md.
#[cfg(test)]
pub fn document() -> String {
    let mut text = String::from("| metric | kind | labels | |\n|---|---|---|---|\n");
    for metric in ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels, help) = (metric.name, metric.kind.name(), labels.join(", "), metric.help);
        text.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
    }
    text.truncate(text.trim_end().len());
    text
}
