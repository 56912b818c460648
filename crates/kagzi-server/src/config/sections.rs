//! Everything that can be set. A new key is a line here; the reader, the names of the variables, the example
//! and the documentation follow.

use std::{net::SocketAddr, time::Duration};

use kagzi_engine::{SchedulerSettings, Settings};
use kagzi_model::RetryPolicy;
use serde_json::Value;

use super::{
    InvalidSetting,
    section::{KeyDoc, SetError, Shown, config, section},
    value::{Endpoint, Hook, Ratio, Raw, Secret, Setting, text},
};
use crate::{DatabaseSettings, EdgeSettings, NotifySettings, StoreUrl, TraceSettings};

config! {
    /// The whole configuration of a server.
    Config {
        server: ServerSection,
        store: StoreSection,
        log: LogSection,
        worker: WorkerSection,
        step: StepSection,
        retry: RetrySection,
        payload: PayloadSection,
        scheduler: SchedulerSection,
        trace: TraceSection,
        retention: RetentionSection,
        notify: NotifySection,
    }
}

impl Config {
    /// Every key.
    pub fn keys() -> Vec<KeyDoc> {
        Config::default().values().into_iter().map(|(key, _)| key).collect()
    }
}

section! {
    /// Where the server listens.
    ServerSection as "server" {
        /// The address to listen on; port 0 takes any free one.
        address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 50051)),
        /// Allow an address that other machines can reach, although there is no authentication yet.
        insecure: bool = false,
        /// Longest wait of one poll or one wait for a result; the caller then asks again.
        wait_max: Duration = Settings::default().wait_max,
        /// A namespace that nobody created is made by the first start or worker that names it. When false,
        /// both are refused until somebody creates it: kagzi ns create NAME.
        create_namespaces: bool = Settings::default().create_namespaces,
        /// So many are made that way until the server is started again, whoever asks; more have to be
        /// created.
        namespaces_made_max: u64 = Settings::default().namespaces_made_max,
        /// Names beside localhost, 127.0.0.1 and [::1] under which a server on loopback may be asked, such as
        /// that of a proxy in front of it. Web pages could otherwise reach it through a name of their own.
        allowed_hosts: Vec<String> = EdgeSettings::default().allowed_hosts,
        /// Connections at once; beyond it new ones are closed at once.
        connections_max: usize = EdgeSettings::default().connections_max,
        /// Calls and streams in flight on one connection; further ones wait in the client. A long poll holds
        /// one.
        streams_per_connection_max: u32 = EdgeSettings::default().streams_per_connection_max,
        /// A connection that has not begun to speak HTTP within this time is closed.
        greeting_timeout: Duration = EdgeSettings::default().greeting_timeout,
        /// A message that has begun must have arrived whole within this time.
        message_timeout: Duration = EdgeSettings::default().message_timeout,
        /// Bytes of requests that are being received or answered at once, of all connections together;
        /// further ones wait for room.
        receiving_bytes_max: usize = EdgeSettings::default().receiving_bytes_max,
    }
}

section! {
    /// Where the data lives. All keys but `url` are for PostgreSQL.
    StoreSection as "store" {
        /// sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE for any number of servers, or turso:PATH
        /// (beta).
        url: Option<StoreUrl> = None,
        /// Servers ring each other with NOTIFY. Off: they find each other's work by polling. Behind PgBouncer
        /// in transaction mode write ?pgbouncer=true in the URL, which switches it off too.
        notify: bool = DatabaseSettings::default().notify,
        /// How often to look for other servers' work unasked. When not set: 5s with `notify`, 1s without.
        poll_interval: Option<Duration> = DatabaseSettings::default().poll_interval,
        /// Longest time of one statement, or of one wait for a lock.
        statement_timeout: Duration = DatabaseSettings::default().statement_timeout,
        /// Longest time that connecting may take.
        connect_timeout: Duration = DatabaseSettings::default().connect_timeout,
        /// Connections for reading. One more writes; with `notify` one listens and one rings.
        readers: usize = DatabaseSettings::default().readers,
    }
}

section! {
    /// What the server says, on stderr.
    LogSection as "log" {
        /// text for people, json for machines.
        format: LogFormat = LogFormat::Text,
        /// error, warn, info, debug or trace; also by module: "info,kagzi_store=debug".
        level: String = "info".into(),
    }
}

section! {
    /// How workers prove that they live, and when their runs are taken over.
    WorkerSection as "worker" {
        /// Workers are told to send a heartbeat this often.
        heartbeat_interval: Duration = Settings::default().heartbeat_interval,
        /// A worker not heard of for this long is lost: its runs are taken over at once. At least twice
        /// `heartbeat_interval`.
        stale_after: Duration = Settings::default().stale_after,
        /// A lease lasts this long beyond the last heartbeat that named it. At least `stale_after`.
        lease: Duration = Settings::default().lease,
        /// A worker whose connection broke has this long to come back; then its runs go on elsewhere. A run
        /// that would not be executed again stays with it until `stale_after`; a grace as long as that
        /// switches this off.
        reconnect_grace: Duration = Settings::default().reconnect_grace,
        /// A run that loses its worker this often in a row without progress is quarantined, whatever the
        /// retry policy of its steps says.
        losses_max: u32 = Settings::default().worker_losses_max,
        /// Workers of one namespace that may be online at once, at most 10,000.
        online_max: u32 = Settings::default().workers_online_max,
        /// Workers that went offline are forgotten after this long.
        forget_after: Duration = Settings::default().forget_workers_after,
    }
}

section! {
    /// How steps are executed.
    StepSection as "step" {
        /// Longest execution of one attempt of a step that sets no limit itself.
        start_to_close: Duration = Settings::default().start_to_close,
        /// Steps of one run that a worker executes at once.
        concurrency_max: u32 = Settings::default().step_concurrency_max,
    }
}

section! {
    /// How failed steps are retried where neither the step nor the run says otherwise (docs/retries.md).
    RetrySection as "retry" {
        /// Executions of a step, the first included; -1 = no limit. When not set: 5.
        maximum_attempts: Option<i32> = None,
        /// Delay before the first retry. When not set: 1s.
        initial_interval: Option<Duration> = None,
        /// By how much each delay is longer than the one before. When not set: 2.0.
        backoff_coefficient: Option<f64> = None,
        /// Longest delay. When not set: 60s.
        maximum_interval: Option<Duration> = None,
        /// Half-width of the jitter, 0 to 1. When not set: 0.5.
        jitter: Option<f64> = None,
        /// Error codes, or beginnings of messages, that are never retried.
        non_retryable_errors: Vec<String> = Vec::new(),
        /// Retries of all steps of a run together; -1 = no limit. When not set: 20.
        run_retries_max: Option<i32> = None,
        /// Waiting for retries of all steps of a run together. When not set: 30m.
        run_retry_budget: Option<Duration> = None,
    }
}

section! {
    /// How large inputs, results and outputs may be.
    PayloadSection as "payload" {
        /// Payloads above this are logged.
        warn_threshold_bytes: usize = Settings::default().payload_warn_bytes,
        /// Payloads above this are refused.
        max_size_bytes: usize = Settings::default().payload_max_bytes,
    }
}

section! {
    /// How schedules are fired.
    SchedulerSection as "scheduler" {
        /// Schedules fire from an armed timer; this often the scheduler looks around anyway.
        interval_secs: u64 = SchedulerSettings::default().interval.as_secs(),
        /// Schedules read at once.
        batch_size: usize = SchedulerSettings::default().batch_size,
        /// Runs started before others get their turn.
        max_workflows_per_tick: usize = SchedulerSettings::default().max_workflows_per_tick,
        /// Schedules that one namespace may have.
        schedules_max: usize = Settings::default().schedules_max,
    }
}

section! {
    /// How long ended runs are kept.
    RetentionSection as "retention" {
        /// Runs that ended longer ago are deleted, with their history and labels; 0s keeps them for ever. A
        /// namespace may set its own.
        finished_runs: Duration = Settings::default().retention.unwrap_or_default(),
    }
}

section! {
    /// Spans of the server (docs/tracing.md). A caller's trace context travels with its runs in any case.
    TraceSection as "trace" {
        /// Where to send spans by OTLP over gRPC, such as http://127.0.0.1:4317. When not set: nowhere. Needs
        /// a build with the feature `otel`.
        otlp_endpoint: Option<Endpoint> = TraceSettings::default().otlp_endpoint.map(Endpoint),
        /// The share of traces that begin at the server; callers decide for theirs.
        sample_ratio: Ratio = Ratio(TraceSettings::default().sample_ratio),
        /// What the server is called in a trace.
        service_name: String = TraceSettings::default().service_name,
    }
}

section! {
    /// How people are told that something waits for them (docs/notices.md). Needs a build with the feature
    /// `notify`.
    NotifySection as "notify" {
        /// The mail server: smtps://USER:PASSWORD@HOST, or smtp://USER:PASSWORD@HOST:587 with STARTTLS. Only
        /// smtp://HOST?tls=none is not encrypted. Without it nobody gets e-mail.
        smtp_url: Option<Endpoint> = None,
        /// The sender of e-mail, such as Kagzi <kagzi@example.org>.
        from: Option<String> = None,
        /// Where messages are posted for contacts without a webhook of their own.
        webhook_url: Option<Hook> = None,
        /// The secret that signs webhooks, at least 16 characters. Without it they are not
        /// signed.
        webhook_secret: Option<Secret> = None,
        /// What on-call services such as PagerDuty call a routing key; it becomes part of every webhook.
        webhook_routing_key: Option<Secret> = None,
        /// Hosts that a contact's own webhook may name, beside that of `webhook_url`.
        webhook_hosts: Vec<String> = Vec::new(),
        /// Where people open the console, such as https://kagzi.example.org; messages link to it. Without
        /// it they name only the command that shows the question.
        console_url: Option<String> = None,
        /// A PEM file with an authority that mail servers and webhooks may have their certificates from,
        /// beside those of the machine.
        ca_file: Option<String> = None,
        /// A JSON file with texts that namespaces have instead of the built-in ones, and whether their messages
        /// may hold payloads.
        texts_file: Option<String> = None,
    }
}

impl NotifySection {
    /// As the couriers know it. An empty text is not set, so that a variable can take a value back.
    pub fn settings(&self) -> NotifySettings {
        let set = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        NotifySettings {
            smtp_url: self.smtp_url.as_ref().and_then(|Endpoint(url)| set(url)),
            from: self.from.as_ref().and_then(set),
            webhook_url: self.webhook_url.as_ref().and_then(|Hook(url)| set(url)),
            webhook_secret: self.webhook_secret.as_ref().and_then(|Secret(secret)| set(secret)),
            webhook_routing_key: self.webhook_routing_key.as_ref().and_then(|Secret(key)| set(key)),
            webhook_hosts: self.webhook_hosts.clone(),
            console_url: self.console_url.as_ref().and_then(set),
            ca_file: self.ca_file.as_ref().and_then(set),
            texts_file: self.texts_file.as_ref().and_then(set),
        }
    }
}

impl ServerSection {
    /// The limits of connections and requests.
    pub fn edge(&self) -> EdgeSettings {
        EdgeSettings {
            allowed_hosts: self.allowed_hosts.clone(),
            connections_max: self.connections_max,
            streams_per_connection_max: self.streams_per_connection_max,
            greeting_timeout: self.greeting_timeout,
            message_timeout: self.message_timeout,
            receiving_bytes_max: self.receiving_bytes_max,
        }
    }
}

impl TraceSection {
    /// As the exporter knows it.
    pub fn settings(&self) -> TraceSettings {
        TraceSettings {
            otlp_endpoint: self.otlp_endpoint.as_ref().map(|Endpoint(url)| url.clone()),
            sample_ratio: self.sample_ratio.0,
            service_name: self.service_name.clone(),
        }
    }
}

impl RetrySection {
    /// As the engine knows it. What is not set stays open: runs store only what somebody chose.
    pub fn policy(&self) -> RetryPolicy {
        let ms = |duration: Option<Duration>| {
            duration.map(|duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
        };
        RetryPolicy {
            maximum_attempts: self.maximum_attempts,
            initial_interval_ms: ms(self.initial_interval),
            backoff_coefficient: self.backoff_coefficient,
            maximum_interval_ms: ms(self.maximum_interval),
            jitter: self.jitter,
            non_retryable_errors: self.non_retryable_errors.clone(),
            run_retries_max: self.run_retries_max,
            run_retry_budget_ms: ms(self.run_retry_budget),
            ..RetryPolicy::default()
        }
    }
}

impl StoreSection {
    /// Refuses settings under which no database could ever answer in time.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let zero = [
            ("store.statement_timeout", self.statement_timeout.is_zero()),
            ("store.connect_timeout", self.connect_timeout.is_zero()),
            ("store.poll_interval", self.poll_interval.is_some_and(|interval| interval.is_zero())),
            ("store.readers", self.readers == 0),
        ];
        match zero.into_iter().find(|(_, zero)| *zero) {
            Some((key, _)) => Err(InvalidSetting::new(key, "it must be above zero")),
            None => Ok(()),
        }
    }

    /// How to talk to a database.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            notify: self.notify,
            poll_interval: self.poll_interval,
            statement_timeout: self.statement_timeout,
            connect_timeout: self.connect_timeout,
            readers: self.readers,
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Setting for LogFormat {
    const EXPECTED: &'static str = "\"text\" or \"json\"";

    fn read(raw: &Raw) -> Option<Self> {
        match text(raw)? {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }

    fn show(&self) -> Value {
        Value::from(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}
