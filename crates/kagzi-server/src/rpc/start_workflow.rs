//! StartWorkflow: one run per business id.

use kagzi_engine::{Engine, EngineError};
use kagzi_model::{
    IdReuse, Name, OnFailure, REQUESTED, Reply, RunOptions, StartRun, Started, Timestamp, USER_LABEL, act,
    limits::{NAME_BYTES_MAX, START_SIGNALS_MAX},
    moment,
};
use kagzi_proto::v1;
use kagzi_store::Outcome;
use tonic::Status;
use uuid::Uuid;

use crate::{
    check::{self, PayloadLimits, invalid},
    services::{heartbeat_interval_ms, limits},
    status::{from_engine, from_engine_once, from_rejection},
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::StartWorkflowRequest,
    trace: Option<Name>,
) -> Result<v1::StartWorkflowResponse, Status> {
    // Signals that nobody named are others when they are sent again.
    let named = !request.request_id.is_empty() || request.signals.iter().all(|it| !it.signal_id.is_empty());
    let mut start = read(engine, limits(engine), request)?;
    start.options.trace = trace;
    let repeatable = repeatable(&start) && named;
    let mut outcomes = engine.start_runs(vec![start]).await.map_err(|error| unstarted(error, repeatable))?;
    answer(outcomes.pop().expect("one start has one outcome"))
}

/// Whether a second start with the same request would find the first one's run.
pub fn repeatable(start: &StartRun) -> bool {
    start.business_id.is_some()
}

/// The status for starts that were not answered by the store.
pub fn unstarted(error: EngineError, repeatable: bool) -> Status {
    if repeatable {
        from_engine(error)
    } else {
        from_engine_once(error, "set a business_id, which names one run, or a request_id")
    }
}

/// Checks every field; nothing is started unless all of them are good.
pub fn read(
    engine: &Engine,
    limits: PayloadLimits,
    request: v1::StartWorkflowRequest,
) -> Result<StartRun, Status> {
    let now = engine.clock().now();
    let id = Engine::new_run_id();
    let beginning =
        Beginning::read(&request.request_id, request.start_at.as_ref(), request.start_delay_ms, now)?;
    let reuse = id_reuse(request.id_reuse)?;
    let timeouts = check::timeouts(request.timeouts, heartbeat_interval_ms(engine))?;
    let deadline =
        request.deadline_at.as_ref().map(|at| wire::read_timestamp("deadline_at", at)).transpose()?;
    if let Some(at) = deadline.filter(|at| *at <= now) {
        let rule = format_args!("it must be in the future; now is {}", moment(now));
        return Err(invalid("deadline_at", format_args!("{}", moment(at)), rule));
    }
    if let (Some(end), Some(start)) = (deadline, beginning.start_at)
        && end <= start
    {
        let rule = format_args!("it must be later than the start, which is {}", moment(start));
        return Err(invalid("deadline_at", format_args!("{}", moment(end)), rule));
    }
    let mut labels = check::run_labels(&request.labels)?;
    if let Some(user) = check::optional_name("user_id", &request.user_id)? {
        labels = labels.with(Name::from(USER_LABEL), user);
    }
    let signals = signals(limits, beginning.request.as_ref(), request.signals)?;
    Ok(StartRun {
        namespace: check::namespace(&request.namespace_id)?,
        id,
        business_id: beginning.business_id(check::business_id(&request.business_id)?),
        workflow_type: check::name("workflow_type", &request.workflow_type)?,
        task_queue: check::name("task_queue", &request.task_queue)?,
        input: check::payload(limits, "input", request.input)?,
        deadline_at: deadline,
        options: RunOptions {
            // What is left open is filled where the run is created, by its namespace and then by the server.
            retry: check::retry_policy(request.retry_policy)?,
            timeouts,
            run_retry: request
                .run_retry_policy
                .map(|policy| check::retry_policy(Some(policy)))
                .transpose()?,
            on_failure: on_failure(&request.on_failure_workflow, &request.on_failure_task_queue)?,
            start_at: beginning.start_at,
            request: beginning.request,
            reuse,
            ..RunOptions::default()
        },
        labels,
        signals,
    })
}

/// What the run is told with its start. Without an id of its own a signal has one by which a repeat of the
/// same request is recognised, where the request has a name.
fn signals(
    limits: PayloadLimits,
    request: Option<&Name>,
    signals: Vec<v1::StartSignal>,
) -> Result<Vec<act::Signal>, Status> {
    if signals.len() > START_SIGNALS_MAX {
        let rule = format_args!("a start carries at most {START_SIGNALS_MAX} signals");
        return Err(invalid("signals", signals.len(), rule));
    }
    let read = |(number, signal): (usize, v1::StartSignal)| {
        let named = check::optional_name("signals.signal_id", &signal.signal_id)?;
        let id = named.unwrap_or_else(|| match request {
            Some(request) => Name::from(format!("{request}#{number}")),
            None => Name::from(Uuid::now_v7().to_string()),
        });
        let channel = check::channel(&signal.channel)?;
        let payload = check::payload(limits, "signals.payload", signal.payload)?;
        let failure = signal.failure.map(|failure| wire::read_failure(Some(failure)));
        Ok(act::Signal { channel, id, payload, failure })
    };
    signals.into_iter().enumerate().map(read).collect()
}

/// What every start may say about itself.
pub struct Beginning {
    pub request: Option<Name>,
    pub start_at: Option<Timestamp>,
}

/// With what stands before it, it must fit into a business id.
const REQUEST_ID_BYTES_MAX: usize = NAME_BYTES_MAX - REQUESTED.len();

impl Beginning {
    pub fn read(
        request_id: &str,
        start_at: Option<&prost_types::Timestamp>,
        start_delay_ms: i64,
        now: Timestamp,
    ) -> Result<Beginning, Status> {
        let request = check::request_id(request_id)?;
        if request_id.len() > REQUEST_ID_BYTES_MAX {
            let rule = format!("at most {REQUEST_ID_BYTES_MAX} bytes are allowed");
            return Err(invalid("request_id", request_id, rule));
        }
        let start_at = match (start_at, u64::try_from(start_delay_ms)) {
            (_, Err(_)) => return Err(invalid("start_delay_ms", start_delay_ms, "it must not be negative")),
            (None, Ok(0)) => None,
            (None, Ok(ms)) => Some(now.plus_ms(check::duration_ms("start_delay_ms", ms)?)),
            (Some(_), Ok(1..)) => {
                return Err(invalid(
                    "start_delay_ms",
                    start_delay_ms,
                    "start_at is set too; set one of them",
                ));
            }
            (Some(at), Ok(0)) => Some(wire::read_timestamp("start_at", at)?),
        };
        // What was to start in the past starts now, and there is nothing to remember.
        Ok(Beginning { request, start_at: start_at.filter(|at| *at > now) })
    }

    /// The id that was chosen, or one by which a repeated request is recognised.
    pub fn business_id(&self, chosen: Option<Name>) -> Option<Name> {
        let requested = |request: &Name| Name::from(format!("{REQUESTED}{request}"));
        chosen.or_else(|| self.request.as_ref().map(requested))
    }
}

/// What to do when another run has the business id.
pub fn id_reuse(number: i32) -> Result<IdReuse, Status> {
    match v1::IdReuse::try_from(number) {
        Ok(v1::IdReuse::Unspecified | v1::IdReuse::Attach) => Ok(IdReuse::Attach),
        Ok(v1::IdReuse::Reject) => Ok(IdReuse::Reject),
        Ok(v1::IdReuse::AfterFailure) => Ok(IdReuse::AfterFailure),
        Ok(v1::IdReuse::AfterEnd) => Ok(IdReuse::AfterEnd),
        Err(_) => Err(invalid("id_reuse", number, "it must be an IdReuse, 1 to 4")),
    }
}

pub fn on_failure(workflow_type: &str, task_queue: &str) -> Result<Option<OnFailure>, Status> {
    let task_queue = check::optional_name("on_failure_task_queue", task_queue)?;
    match (check::optional_name("on_failure_workflow", workflow_type)?, task_queue) {
        (Some(workflow_type), task_queue) => Ok(Some(OnFailure { workflow_type, task_queue })),
        (None, None) => Ok(None),
        (None, Some(queue)) => {
            Err(invalid("on_failure_task_queue", &*queue, "it needs an on_failure_workflow beside it"))
        }
    }
}

/// The answer to one start.
pub fn answer(outcome: Outcome) -> Result<v1::StartWorkflowResponse, Status> {
    match outcome {
        Ok(Reply::Started(Started { run, existed })) => {
            Ok(v1::StartWorkflowResponse { run_id: run.to_string(), already_exists: existed })
        }
        Ok(other) => Err(Status::internal(format!("a start was answered with {other:?}"))),
        Err(rejection) => Err(from_rejection(&rejection)),
    }
}
