//! The namespace: a tenant's own runs and workers, and the defaults an operator set for them.

use serde::{Deserialize, Serialize};

use crate::{Millis, Name, Rejection, RetryPolicy, StartRun, Timeouts, Timestamp};

/// The namespace that is meant when none is named. It exists always.
pub const DEFAULT_NAMESPACE: &str = "default";

/// One namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct Namespace {
    pub name: Name,
    pub description: String,
    /// Takes no new runs while set; those that live go on.
    pub disabled: Option<Mark>,
    pub defaults: Defaults,
    /// Finished runs are kept this long; the server's word when unset.
    pub retention_ms: Option<Millis>,
    /// Where the namespace's failure handler starts when no worker in the registry says.
    pub handler_queue: Option<Name>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Rises with every change of the namespace and of its gates, so that a server with an old copy is
    /// noticed.
    pub version: u64,
}

/// Who did something by hand, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub by: Name,
    pub note: String,
    pub since: Timestamp,
}

/// What fills the fields that a run leaves open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Defaults {
    #[serde(default)]
    pub retry: RetryPolicy,
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// A change of a namespace, as plain data. Each is safe to send twice, but for a creation.
#[derive(Debug, Clone, PartialEq)]
pub enum NamespaceCommand {
    Create(NamespaceChange),
    Update(NamespaceChange),
    Disable { by: Name, note: String },
    Enable,
}

/// New values; what is unset stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamespaceChange {
    /// Forgotten before the new values are put in.
    pub clear: Vec<NamespaceField>,
    pub description: Option<String>,
    /// Field by field over what is there.
    pub defaults: Defaults,
    pub retention_ms: Option<Millis>,
    pub handler_queue: Option<Name>,
}

/// A field that can be left to the server again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceField {
    RetryPolicy,
    Timeouts,
    Retention,
    FailureHandlerQueue,
}

impl NamespaceField {
    pub const ALL: [NamespaceField; 4] = [
        NamespaceField::RetryPolicy,
        NamespaceField::Timeouts,
        NamespaceField::Retention,
        NamespaceField::FailureHandlerQueue,
    ];

    /// The field's name as users read and type it.
    pub fn name(self) -> &'static str {
        match self {
            NamespaceField::RetryPolicy => "retry_policy",
            NamespaceField::Timeouts => "timeouts",
            NamespaceField::Retention => "retention",
            NamespaceField::FailureHandlerQueue => "failure_handler_queue",
        }
    }
}

/// Why what an operator asked for a namespace or a gate is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlRejection {
    #[error("there is no namespace '{0}'; create it with: kagzi ns create {0}")]
    Unknown(Name),
    #[error("there is a namespace '{0}' already; change it with: kagzi ns update {0}")]
    Exists(Name),
    #[error("namespace '{namespace}' has {max} gates, no more are allowed; resume or unlimit some first")]
    TooManyGates { namespace: Name, max: usize },
}

impl Namespace {
    /// A namespace with nothing set.
    pub fn new(name: Name, now: Timestamp) -> Self {
        Namespace {
            name,
            description: String::new(),
            disabled: None,
            defaults: Defaults::default(),
            retention_ms: None,
            handler_queue: None,
            created_at: now,
            updated_at: now,
            version: 1,
        }
    }

    /// Runs that ended at or before this time are past their retention: the namespace's own, else the
    /// server's. None when neither sets one.
    pub fn retired_until(now: Timestamp, own: Option<Millis>, server: Option<Millis>) -> Option<Timestamp> {
        own.or(server).map(|keep_ms| now.plus_ms(-keep_ms))
    }

    /// The namespace after a command; none when it changes nothing.
    pub fn decide(
        now: Timestamp,
        seen: Option<&Namespace>,
        name: &Name,
        command: &NamespaceCommand,
    ) -> Result<Option<Namespace>, ControlRejection> {
        let known = || seen.ok_or_else(|| ControlRejection::Unknown(name.clone()));
        let changed = match command {
            NamespaceCommand::Create(_) if seen.is_some() => {
                return Err(ControlRejection::Exists(name.clone()));
            }
            NamespaceCommand::Create(change) => {
                // 1 is the version of a namespace that was made by its first use.
                let made = Namespace { version: 2, ..Namespace::new(name.clone(), now) };
                return Ok(Some(made.with(change)));
            }
            NamespaceCommand::Update(change) => known()?.with(change),
            NamespaceCommand::Disable { by, note } => {
                let seen = known()?;
                // Asked twice, the first keeps its name and time.
                let mark = Mark { by: by.clone(), note: note.clone(), since: now };
                Namespace { disabled: seen.disabled.clone().or(Some(mark)), ..seen.clone() }
            }
            NamespaceCommand::Enable => Namespace { disabled: None, ..known()?.clone() },
        };
        let same = seen.is_some_and(|seen| *seen == changed);
        Ok((!same).then(|| Namespace { updated_at: now, version: changed.version + 1, ..changed }))
    }

    fn with(&self, change: &NamespaceChange) -> Namespace {
        let mut new = self.clone();
        for field in &change.clear {
            match field {
                NamespaceField::RetryPolicy => new.defaults.retry = RetryPolicy::default(),
                NamespaceField::Timeouts => new.defaults.timeouts = Timeouts::default(),
                NamespaceField::Retention => new.retention_ms = None,
                NamespaceField::FailureHandlerQueue => new.handler_queue = None,
            }
        }
        if let Some(description) = &change.description {
            new.description.clone_from(description);
        }
        new.defaults = change.defaults.or(&new.defaults);
        new.retention_ms = change.retention_ms.or(new.retention_ms);
        new.handler_queue = change.handler_queue.clone().or(new.handler_queue);
        new
    }

    /// Whether a new run may start here.
    pub fn admit(&self) -> Result<(), Rejection> {
        match &self.disabled {
            None => Ok(()),
            Some(mark) => Err(Rejection::NamespaceDisabled {
                namespace: self.name.clone(),
                why: match mark.note.is_empty() {
                    true => format!("by {}", mark.by),
                    false => format!("by {}: {}", mark.by, mark.note),
                },
            }),
        }
    }
}

impl Defaults {
    /// These defaults, with `outer` filling the fields they leave open.
    pub fn or(&self, outer: &Defaults) -> Defaults {
        Defaults { retry: self.retry.or(&outer.retry), timeouts: self.timeouts.or(&outer.timeouts) }
    }

    /// Nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Defaults::default()
    }

    /// The start with its open fields filled: step > run > namespace > server, and these are the last two
    /// merged.
    pub fn fill(&self, start: &StartRun) -> StartRun {
        let mut filled = start.clone();
        filled.options.retry = start.options.retry.or(&self.retry);
        filled.options.timeouts = start.options.timeouts.or(&self.timeouts);
        filled
    }
}

impl Timeouts {
    /// These timeouts, with `outer` filling the fields they leave open.
    pub fn or(&self, outer: &Timeouts) -> Timeouts {
        Timeouts {
            start_to_close_ms: self.start_to_close_ms.or(outer.start_to_close_ms),
            heartbeat_ms: self.heartbeat_ms.or(outer.heartbeat_ms),
            execution_ms: self.execution_ms.or(outer.execution_ms),
        }
    }

    /// When a run that is created now must have ended: at the moment that was asked for or when its execution
    /// time is over, whichever is earlier. An execution time of 0 is no limit. The only place where a
    /// deadline is made.
    pub fn deadline_of(&self, now: Timestamp, asked: Option<Timestamp>) -> Option<Timestamp> {
        let end = self.execution_ms.filter(|ms| *ms > 0).map(|ms| now.plus_ms(ms));
        [asked, end].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{Payload, RunId, RunOptions};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn shop() -> Namespace {
        Namespace::new("shop".into(), NOW)
    }

    fn apply(seen: &Namespace, command: NamespaceCommand) -> Option<Namespace> {
        Namespace::decide(NOW, Some(seen), &seen.name, &command).unwrap()
    }

    fn start(timeouts: Timeouts, deadline_at: Option<Timestamp>) -> StartRun {
        let retry = RetryPolicy { maximum_attempts: Some(9), ..RetryPolicy::default() };
        StartRun {
            namespace: "shop".into(),
            id: RunId(Uuid::nil()),
            business_id: Some("order-1".into()),
            workflow_type: "order".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b""[..]),
            deadline_at,
            labels: Default::default(),
            signals: Vec::new(),
            options: RunOptions { retry, timeouts, ..RunOptions::default() },
        }
    }

    #[test]
    fn a_namespace_is_created_once() {
        let created =
            Namespace::decide(NOW, None, &"shop".into(), &NamespaceCommand::Create(Default::default()));

        assert_eq!(created, Ok(Some(Namespace { version: 2, ..shop() })));
        let again = Namespace::decide(
            NOW,
            Some(&shop()),
            &"shop".into(),
            &NamespaceCommand::Create(Default::default()),
        );
        assert_eq!(again, Err(ControlRejection::Exists("shop".into())));
    }

    #[test]
    fn what_is_not_there_cannot_be_changed_and_the_message_says_what_to_do() {
        let refused = Namespace::decide(NOW, None, &"shop".into(), &NamespaceCommand::Enable).unwrap_err();

        assert_eq!(refused.to_string(), "there is no namespace 'shop'; create it with: kagzi ns create shop");
    }

    #[test]
    fn an_update_changes_the_fields_it_names_and_raises_the_version() {
        let retry = |maximum_attempts, initial_interval_ms| Defaults {
            retry: RetryPolicy { maximum_attempts, initial_interval_ms, ..RetryPolicy::default() },
            ..Defaults::default()
        };
        let first = NamespaceChange { defaults: retry(Some(3), None), ..Default::default() };
        let second =
            NamespaceChange { defaults: retry(None, Some(50)), retention_ms: Some(7), ..Default::default() };

        let once = apply(&shop(), NamespaceCommand::Update(first.clone())).unwrap();
        let twice = apply(&once, NamespaceCommand::Update(second)).unwrap();

        assert_eq!(twice.defaults, retry(Some(3), Some(50)));
        assert_eq!((twice.retention_ms, twice.version), (Some(7), 3));
        assert_eq!(apply(&once, NamespaceCommand::Update(first)), None, "a repeat changes nothing");
    }

    #[test]
    fn a_cleared_field_is_left_to_the_server_again() {
        let set = NamespaceChange {
            retention_ms: Some(7),
            handler_queue: Some("alerts".into()),
            ..Default::default()
        };
        let set = apply(&shop(), NamespaceCommand::Update(set)).unwrap();

        let clear = NamespaceChange { clear: vec![NamespaceField::Retention], ..Default::default() };
        let cleared = apply(&set, NamespaceCommand::Update(clear)).unwrap();

        assert_eq!((cleared.retention_ms, cleared.handler_queue), (None, Some("alerts".into())));
    }

    #[test]
    fn retention_is_the_namespaces_own_or_else_the_servers() {
        let until = |own, server| Namespace::retired_until(NOW, own, server);

        assert_eq!(until(Some(7), Some(90)), Some(NOW.plus_ms(-7)));
        assert_eq!(
            until(Some(90), Some(7)),
            Some(NOW.plus_ms(-90)),
            "longer than the server's is the namespace's too"
        );
        assert_eq!(until(None, Some(90)), Some(NOW.plus_ms(-90)));
        assert_eq!(until(Some(7), None), Some(NOW.plus_ms(-7)));
        assert_eq!(until(None, None), None);
    }

    #[test]
    fn a_disabled_namespace_says_by_whom_and_why() {
        let disable = NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() };

        let disabled = apply(&shop(), disable.clone()).unwrap();

        let refused = disabled.admit().unwrap_err().to_string();
        assert!(refused.contains("'shop' is disabled by ada: unpaid"), "{refused}");
        assert_eq!(apply(&disabled, disable), None);
        assert_eq!(apply(&disabled, NamespaceCommand::Enable).unwrap().admit(), Ok(()));
    }

    #[test]
    fn defaults_fill_only_what_the_run_leaves_open() {
        let server = Defaults {
            retry: RetryPolicy { maximum_attempts: Some(2), jitter: Some(0.1), ..RetryPolicy::default() },
            timeouts: Timeouts {
                start_to_close_ms: Some(600_000),
                heartbeat_ms: Some(30_000),
                execution_ms: None,
            },
        };
        let namespace = Defaults {
            retry: RetryPolicy { jitter: Some(0.2), ..RetryPolicy::default() },
            timeouts: Timeouts {
                heartbeat_ms: Some(20_000),
                execution_ms: Some(5_000),
                ..Timeouts::default()
            },
        };
        let own = Timeouts { start_to_close_ms: Some(1_000), ..Timeouts::default() };

        let filled = namespace.or(&server).fill(&start(own, None));

        let retry = &filled.options.retry;
        assert_eq!((retry.maximum_attempts, retry.jitter), (Some(9), Some(0.2)));
        let expected = Timeouts {
            start_to_close_ms: Some(1_000),
            heartbeat_ms: Some(20_000),
            execution_ms: Some(5_000),
        };
        assert_eq!(filled.options.timeouts, expected);
        assert_eq!(filled.options.timeouts.deadline_of(NOW, None), Some(NOW.plus_ms(5_000)));
    }

    #[test]
    fn a_run_that_says_no_limit_has_none_and_the_earlier_deadline_wins() {
        let limited = Defaults {
            timeouts: Timeouts { execution_ms: Some(5_000), ..Timeouts::default() },
            ..Defaults::default()
        };
        let unlimited = Timeouts { execution_ms: Some(0), ..Timeouts::default() };
        let sooner = Some(NOW.plus_ms(1));

        let deadline = |start: StartRun| start.options.timeouts.deadline_of(NOW, start.deadline_at);
        assert_eq!(deadline(limited.fill(&start(unlimited, None))), None);
        assert_eq!(deadline(limited.fill(&start(Timeouts::default(), sooner))), sooner);
    }
}
