//! Metrics in Prometheus' text format, read from counters that exist anyway.

pub mod catalogue;
mod page;
mod sample;

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use axum::{extract::State, http::header, response::IntoResponse};
use kagzi_engine::{Engine, SweepCount};
use kagzi_model::Timestamp;
use kagzi_notices::rounds::NoticeStats;
use kagzi_store::{AsideRow, Census, LaneStats, QueueCount, WaitCount};

use crate::{edge::CallStats, readiness::Progress};
use page::Page;
use sample::Sampler;

/// Microseconds as seconds.
const MICROS: f64 = 1e-6;

/// What the page is made of.
#[derive(Clone)]
pub struct Metrics {
    engine: Engine,
    progress: Arc<Progress>,
    sampler: Arc<Sampler>,
    calls: Arc<CallStats>,
    notices: Arc<NoticeStats>,
}

impl Metrics {
    pub fn new(
        engine: Engine,
        progress: Arc<Progress>,
        calls: Arc<CallStats>,
        notices: Arc<NoticeStats>,
    ) -> Metrics {
        Metrics { engine, progress, sampler: Arc::default(), calls, notices }
    }

    /// Asks the store, waits a bounded time, and writes the page.
    async fn render(&self) -> String {
        let ready = self.progress.check().await;
        let sample = match &ready {
            Ok(_) => self.sampler.sample(&self.engine).await,
            // A store that does not answer has been asked once already.
            Err(_) => Census::default(),
        };
        let waits = match &ready {
            Ok(_) => self.sampler.waits(&self.engine).await,
            Err(_) => Vec::new(),
        };
        // An answer that is missing is a gauge that is missing.
        let oldest = match &ready {
            Ok(_) => self.engine.store().oldest_transaction().await.ok().flatten(),
            Err(_) => None,
        };
        let notice_due = match &ready {
            Ok(_) => self.engine.store().notice_due_since().await.ok().flatten(),
            Err(_) => None,
        };
        self.page(&sample, &waits, ready.ok(), oldest, notice_due)
    }

    fn page(
        &self,
        sample: &Census,
        waits: &[WaitCount],
        ping: Option<Duration>,
        oldest_transaction: Option<f64>,
        notice_due: Option<Timestamp>,
    ) -> String {
        let engine = &self.engine;
        let stats = engine.store().stats();
        let count = |counter| LaneStats::get(counter) as f64;
        let now = engine.clock().now();
        let age = |queue: &QueueCount| queue.oldest_ready_at.map_or(Duration::ZERO, |at| now - at);
        let mut page = Page::default();
        page.value(&catalogue::READY, f64::from(u8::from(ping.is_some())));
        page.values(&catalogue::BUILD, [(vec![env!("CARGO_PKG_VERSION")], 1.0)]);
        page.value(&catalogue::UPTIME, engine.uptime().as_secs_f64());
        page.values(&catalogue::QUEUE_READY, queues(sample, |queue| queue.ready as f64));
        page.values(&catalogue::QUEUE_READY_AGE, queues(sample, |queue| age(queue).as_secs_f64()));
        page.values(&catalogue::QUEUE_WAITING, queues(sample, |queue| queue.waiting as f64));
        let kinds = waits.iter().map(|waits| (vec![&*waits.namespace, &*waits.reason], waits.count as f64));
        page.values(&catalogue::WAITS_OPEN, kinds);
        page.values(&catalogue::QUEUE_LEASED, queues(sample, |queue| queue.leased as f64));
        let workers = sample.workers.iter();
        page.values(
            &catalogue::WORKERS,
            workers.map(|counted| (vec![&*counted.namespace, counted.status.name()], counted.count as f64)),
        );
        page.value(&catalogue::WORKER_STREAMS, engine.hub().sessions() as f64);
        page.value(&catalogue::SAMPLE_ERRORS, self.sampler.errors() as f64);
        let outcomes = engine.hub().outcomes();
        page.values(
            &catalogue::RUNS_FINISHED,
            outcomes.iter().map(|(outcome, count)| (vec![*outcome], *count as f64)),
        );
        page.histogram(&catalogue::SCHEDULE_TO_START, &stats.schedule_to_start.read(), MICROS);
        page.histogram(&catalogue::TIMER_LAG, &stats.timer_lag.read(), MICROS);
        page.value(&catalogue::SCHEDULE_FIRES, count(&stats.schedule_fires));
        page.histogram(&catalogue::SCHEDULE_LATENESS, &stats.schedule_lateness.read(), MICROS);
        let skipped = [("overlap", &stats.schedule_overlapped), ("missed", &stats.schedule_missed)];
        page.values(
            &catalogue::SCHEDULE_SKIPPED,
            skipped.map(|(reason, counter)| (vec![reason], count(counter))),
        );
        page.value(&catalogue::SCHEDULE_BUFFERED, count(&stats.schedule_buffered));
        page.value(&catalogue::STEP_RETRIES, count(&stats.step_retries));
        page.value(&catalogue::RUN_RETRIES, count(&stats.run_retries));
        page.value(&catalogue::LEASES, count(&stats.leases));
        page.value(&catalogue::LEASES_LOST, count(&stats.leases_lost));
        page.value(&catalogue::STALE_WRITES, count(&stats.refused_stale));
        let signals = [
            ("told", &stats.signals_told),
            ("repeated", &stats.signals_repeated),
            ("full", &stats.signals_full),
            ("refused", &stats.signals_refused),
        ];
        page.values(&catalogue::SIGNALS, signals.map(|(outcome, counter)| (vec![outcome], count(counter))));
        let notices = self.notices.read();
        page.values(
            &catalogue::NOTICES,
            notices.iter().map(|((channel, outcome), count)| (vec![*channel, *outcome], *count as f64)),
        );
        let overdue = notice_due.map_or(Duration::ZERO, |due_at| now - due_at);
        page.value(&catalogue::NOTICE_OVERDUE, overdue.as_secs_f64());
        let published = [
            ("kept", &stats.events_published),
            ("repeated", &stats.events_repeated),
            ("refused", &stats.events_refused),
        ];
        let published = published.map(|(outcome, counter)| (vec![outcome], count(counter)));
        page.values(&catalogue::PUBLISHED, published);
        page.value(&catalogue::DELIVERED, count(&stats.events_delivered));
        page.value(&catalogue::EXPIRED, count(&stats.events_expired));
        page.value(&catalogue::TRIGGER_RUNS, count(&stats.trigger_starts));
        page.value(&catalogue::COMMANDS, count(&stats.commands));
        page.value(&catalogue::REFUSED, count(&stats.refused));
        page.value(&catalogue::EVENTS, count(&stats.events));
        page.value(&catalogue::COMMITS, count(&stats.commits));
        page.histogram(&catalogue::COMMANDS_PER_COMMIT, &stats.batch_len.read(), 1.0);
        page.histogram(&catalogue::COMMIT_TIME, &stats.commit_time.read(), MICROS);
        page.value(&catalogue::COMMIT_ERRORS, count(&stats.commit_errors));
        page.value(&catalogue::CONFLICTS, count(&stats.conflicts));
        page.value(&catalogue::LANE_QUEUE, count(&stats.queue_len));
        page.value(&catalogue::ROUND_TRIPS, count(&stats.round_trips));
        page.value(&catalogue::RUNS_LOADED, count(&stats.runs_loaded));
        page.value(&catalogue::EVENTS_LOADED, count(&stats.events_loaded));
        page.value(&catalogue::REPLAY_EVENTS, count(&stats.replay_events));
        page.value(&catalogue::TAKEN_APART, count(&stats.taken_apart));
        page.values(
            &catalogue::SET_ASIDE,
            AsideRow::KINDS.map(|kind| (vec![kind], stats.aside.count(kind) as f64)),
        );
        let sweeps = self.engine.hub().sweeps.read();
        let by_name = |of: fn(&SweepCount) -> u64| {
            sweeps.iter().map(move |(name, count)| (vec![*name], of(count) as f64)).collect::<Vec<_>>()
        };
        page.values(&catalogue::SWEEP_ROUNDS, by_name(|count| count.rounds));
        page.values(&catalogue::SWEEP_ERRORS, by_name(|count| count.errors));
        page.value(&catalogue::RETENTION_RUNS, count(&stats.runs_retired));
        page.value(&catalogue::RETENTION_EVENTS, count(&stats.events_retired));
        page.value(&catalogue::RETENTION_BATCHES, count(&stats.retention_batches));
        page.value(&catalogue::DATABASE_DAMAGED, f64::from(u8::from(stats.damage().is_some())));
        page.values(&catalogue::OLDEST_TRANSACTION, oldest_transaction.map(|seconds| (Vec::new(), seconds)));
        page.values(&catalogue::DATABASE_PING, ping.map(|ping| (Vec::new(), ping.as_secs_f64())));
        self.edge(&mut page);
        page.value(&catalogue::CLOCK_SKEW, engine.clock().skew_ms() as f64 / 1e3);
        page.value(&catalogue::CLOCK_LEAPS, engine.clock().leaps() as f64);
        page.text
    }

    /// What connections and calls did.
    fn edge(&self, page: &mut Page) {
        let calls = &self.calls;
        let methods = calls.methods();
        let ended = methods.iter().flat_map(|method| {
            method.ended().map(|(code, count)| (vec![method.name.as_str(), code], count as f64))
        });
        page.values(&catalogue::RPC_CALLS, ended);
        let timed = methods.iter().filter_map(|method| {
            let read = method.latency.read();
            (read.count > 0).then(|| (vec![method.name.as_str()], read))
        });
        page.histograms(&catalogue::RPC_TIME, timed, MICROS);
        let open = [("call", calls.open_calls()), ("stream", calls.open_streams())];
        page.values(&catalogue::RPC_OPEN, open.map(|(kind, count)| (vec![kind], count as f64)));
        page.value(&catalogue::RPC_RECEIVED, calls.received_bytes() as f64);
        page.value(&catalogue::RPC_SENT, calls.sent_bytes() as f64);
        page.values(&catalogue::HTTP_REFUSED, calls.refusals().map(|(why, count)| (vec![why], count as f64)));
        let connections = &calls.connections;
        page.value(&catalogue::CONNECTIONS, connections.open.load(Relaxed) as f64);
        let closed = [("full", &connections.refused), ("silent", &connections.silent)];
        page.values(
            &catalogue::CONNECTIONS_CLOSED,
            closed.map(|(why, count)| (vec![why], count.load(Relaxed) as f64)),
        );
        page.value(&catalogue::ACCEPT_ERRORS, connections.accept_errors.load(Relaxed) as f64);
    }
}

/// The page that Prometheus reads.
pub async fn page(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.render().await)
}

fn queues(sample: &Census, value: impl Fn(&QueueCount) -> f64) -> impl Iterator<Item = (Vec<&str>, f64)> {
    sample.queues.iter().map(move |queue| (vec![&*queue.namespace, &*queue.task_queue], value(queue)))
}

#[cfg(test)]
mod tests;
