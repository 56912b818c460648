//! Every reason for which the server refuses a call; the codes of failures come from the catalogue.
//! Programs compare these names, never messages. docs/errors.md is written from here.

use tonic::Code;

/// The domain of every `google.rpc.ErrorInfo` that the server sends.
pub const DOMAIN: &str = "kagzi";

/// Declares reasons: variant, gRPC code, what happened, what a caller does.
macro_rules! reasons {
    ($($variant:ident $name:literal $code:ident $means:literal $do:literal)+) => {
        /// Why a call, or a message on a stream, was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $means] $variant,)+
        }

        impl Reason {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Reason] = &[$(Reason::$variant,)+];

            /// As it stands in `ErrorInfo.reason`.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)+ }
            }

            /// The gRPC code that goes with it.
            pub const fn code(self) -> Code {
                match self { $(Reason::$variant => Code::$code,)+ }
            }

            /// What happened, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Reason::$variant => $means,)+ }
            }

            /// What a caller does about it, in a sentence.
            pub const fn advice(self) -> &'static str {
                match self { $(Reason::$variant => $do,)+ }
            }
        }
    };
}

reasons! {
    FieldInvalid "FIELD_INVALID" InvalidArgument
        "A field of the request breaks a rule; `BadRequest` names the field and the rule."
        "Mend the request."
    MessageInvalid "MESSAGE_INVALID" InvalidArgument
        "The bytes are no message of this method, or a message came where it has no place on a stream."
        "Mend the client; it may speak another version of the protocol."
    PayloadTooLarge "PAYLOAD_TOO_LARGE" InvalidArgument
        "A payload or a message is larger than the server accepts; `limit_bytes` and `size_bytes` say how \
         much."
        "Store large data elsewhere and pass a reference."
    NotStorable "NOT_STORABLE" InvalidArgument
        "The database cannot hold what the request says."
        "Mend the request."
    TypeNotRegistered "TYPE_NOT_REGISTERED" InvalidArgument
        "A worker asks for a workflow type that it did not register."
        "Register the worker with all of its types."
    RunNotFound "RUN_NOT_FOUND" NotFound
        "No run of the namespace has this id or business id; it may have been deleted after its retention."
        "Look at the id and the namespace. A worker stops executing the run."
    StepNotFound "STEP_NOT_FOUND" NotFound
        "The run has no such step, or the step no such attempt."
        "Look at the step's path."
    PromiseNotFound "PROMISE_NOT_FOUND" NotFound
        "The run has no such promise, or the token is not its token."
        "Look at the token, at the run and at the name. Nothing was written."
    WorkerNotFound "WORKER_NOT_FOUND" NotFound
        "The registry has no such worker, or it went offline."
        "A worker registers again; a person looks at the id."
    ScheduleNotFound "SCHEDULE_NOT_FOUND" NotFound
        "The namespace has no such schedule."
        "Look at the id and the namespace."
    QuestionNotFound "QUESTION_NOT_FOUND" NotFound
        "The namespace has no such question to a person."
        "Look at the id and the namespace; a question goes with its run."
    KeyConflict "KEY_CONFLICT" FailedPrecondition
        "A shared key is used with another input than before; its result is for something else."
        "Use another key, or look at what makes it: the same key must mean the same work."
    KeyLost "KEY_LOST" FailedPrecondition
        "The claim of a shared key had run out, and another has taken it; nothing was written."
        "The work may have been done twice: hand the key to a receiver that deduplicates."
    NounNotFound "NOUN_NOT_FOUND" NotFound
        "The namespace has nothing of this kind and id."
        "Look at the id and the namespace."
    NamespaceNotFound "NAMESPACE_NOT_FOUND" NotFound
        "There is no such namespace, and the server makes none by itself."
        "Create it, or look at the name."
    ServiceNotFound "SERVICE_NOT_FOUND" NotFound
        "The health of a service was asked for that this server does not have."
        "Ask with an empty name, or with the name of a service of `kagzi.v1`."
    PromiseExists "PROMISE_EXISTS" AlreadyExists
        "The run has a promise of this name already."
        "Names of promises are unique in a run: choose another one."
    BusinessIdTaken "BUSINESS_ID_TAKEN" AlreadyExists
        "Another run has the business id: one with another input, type or queue, or any run that the reuse \
         policy \
         does not step over; `run_id` names it."
        "Use another id, or the policy that fits."
    RequestIdTaken "REQUEST_ID_TAKEN" AlreadyExists
        "The request id was used before for something else."
        "Use a new request id for every new request."
    NamespaceExists "NAMESPACE_EXISTS" AlreadyExists
        "A namespace of this name is there already."
        "Update it instead."
    ScheduleExists "SCHEDULE_EXISTS" AlreadyExists
        "A schedule of this id is there already and says something else."
        "Update it instead, or use another id."
    NounExists "NOUN_EXISTS" AlreadyExists
        "A thing of this kind and id is there already and says something else."
        "Delete it first, or use another id."
    QuestionClosed "QUESTION_CLOSED" FailedPrecondition
        "Somebody answered before, its time was over, or nobody wants to know any more; the message says who \
         and when."
        "Nothing to do. Nothing was written."
    QuestionClaimed "QUESTION_CLAIMED" FailedPrecondition
        "Somebody else works on the question."
        "Ask that person, wait five minutes, or answer with force."
    QuestionChanged "QUESTION_CHANGED" FailedPrecondition
        "The question has another version than the caller expects."
        "Read it again and decide anew."
    NotAsked "NOT_ASKED" PermissionDenied
        "The question is for other people."
        "Let it be assigned to you, or answer with force."
    LeaseLost "LEASE_LOST" FailedPrecondition
        "The run was given to another worker, given back or paused: the epoch is no longer good."
        "The worker stops executing the run. Nothing was written."
    RunEnded "RUN_ENDED" FailedPrecondition
        "The run has ended; `status` says how, CANCELLED among others."
        "The worker stops executing the run. Nothing was written."
    StepMismatch "STEP_MISMATCH" FailedPrecondition
        "The record has another step at this place: the code has changed. A report on the stream pauses the \
         run."
        "The worker stops executing the run; a person decides."
    StepDecided "STEP_DECIDED" FailedPrecondition
        "The step was recorded before with another outcome."
        "Read the journal and go on from there."
    RunEndedUnanswered "RUN_ENDED_UNANSWERED" FailedPrecondition
        "The run ended without an answer to this request; `status` says how."
        "Ask another run, or look at this one's output."
    ChannelClosed "CHANNEL_CLOSED" FailedPrecondition
        "The run's code takes nothing more on this channel. Nothing was written."
        "Start another run, or use another channel."
    NotResumable "NOT_RESUMABLE" FailedPrecondition
        "Only a PAUSED or retrying run can be resumed."
        "Look where the run stands."
    NotReopenable "NOT_REOPENABLE" FailedPrecondition
        "Only a run that ended FAILED, TIMED_OUT or CANCELLED can be retried."
        "Look where the run stands, or start a new one with RestartWorkflowRun."
    NotForgivable "NOT_FORGIVABLE" FailedPrecondition
        "The run cannot go on from this step: it has not failed, or more was recorded after it."
        "Start a new run with RestartWorkflowRun."
    InputGone "INPUT_GONE" FailedPrecondition
        "The input of the former run is no longer kept."
        "Start a new run with StartWorkflow."
    NamespaceDisabled "NAMESPACE_DISABLED" FailedPrecondition
        "The namespace takes no new runs."
        "Wait until an operator enables it."
    WorkerOffline "WORKER_OFFLINE" FailedPrecondition
        "The worker is not in the registry, or was taken offline."
        "Register again."
    WorkerDraining "WORKER_DRAINING" FailedPrecondition
        "The worker is draining and takes nothing new."
        "Finish what is in flight and deregister."
    RunNotDue "RUN_NOT_DUE" Aborted
        "The run is not due, or somebody else took it first."
        "Poll again."
    ScheduleChanged "SCHEDULE_CHANGED" Aborted
        "The schedule was changed since the version that the request names."
        "Read it again and decide anew."
    StreamReplaced "STREAM_REPLACED" Aborted
        "The worker opened another stream, which took the place of this one."
        "Go on with the newer stream."
    HostRefused "HOST_REFUSED" PermissionDenied
        "The server listens on loopback and does not answer to this name."
        "Call it by a name of this machine, or add the name to `server.allowed_hosts`."
    WorkerIdTaken "WORKER_ID_TAKEN" PermissionDenied
        "The worker id is that of a worker of another namespace or queue."
        "Use a new UUID."
    QuotaExceeded "QUOTA_EXCEEDED" ResourceExhausted
        "A limit on how many there may be is reached; `limit` says how many."
        "Remove what is not needed, or ask an operator for more."
    TooManySteps "TOO_MANY_STEPS" ResourceExhausted
        "The run has as many recorded steps as it may have."
        "Split the run."
    TooManyLabels "TOO_MANY_LABELS" ResourceExhausted
        "The run has as many labels as it may have."
        "Use fewer names."
    TooManyValues "TOO_MANY_VALUES" ResourceExhausted
        "The run has as many values as it may have."
        "Use fewer names."
    TooManySignals "TOO_MANY_SIGNALS" ResourceExhausted
        "The run has as many signals that it has not taken as it may have. Nothing was written."
        "Send it again later, with the same signal id."
    TooManyEvents "TOO_MANY_EVENTS" ResourceExhausted
        "The namespace keeps as many published events, or bytes of them, as it may. Nothing was written."
        "Wait until some have expired, or keep events for a shorter time."
    TooManyNouns "TOO_MANY_NOUNS" ResourceExhausted
        "The namespace has as many things of this kind (triggers, for one) as it may have."
        "Delete one that is not needed."
    TooManyWaits "TOO_MANY_WAITS" ResourceExhausted
        "The run runs or waits for as many things at once as it may."
        "Wait for fewer at once, or split the run."
    TooManyChildren "TOO_MANY_CHILDREN" ResourceExhausted
        "The run has started as many runs as it may."
        "Split the run, or continue it in place."
    LineageTooDeep "LINEAGE_TOO_DEEP" ResourceExhausted
        "The run has as many runs above it as it may have, and cannot start another."
        "Let a run further up start it."
    HistoryTooLarge "HISTORY_TOO_LARGE" ResourceExhausted
        "The payloads in the history of the run are as large as they may be together, 128 MiB."
        "Split the run, or keep large data elsewhere."
    SlowReader "SLOW_READER" ResourceExhausted
        "The peer of a stream does not read what is sent to it."
        "Read faster, or ask for less; then open the stream again."
    StoreFull "STORE_FULL" ResourceExhausted
        "The database has no room left."
        "An operator makes room."
    CallTimeout "CALL_TIMEOUT" DeadlineExceeded
        "The call, or a message of it, took longer than the server allows."
        "Look whether it had an effect before it is sent again."
    StoreUnavailable "STORE_UNAVAILABLE" Unavailable
        "The database does not answer, or two servers wrote at once."
        "Send the same request again in a moment: it is safe."
    OutcomeUnknown "OUTCOME_UNKNOWN" Unavailable
        "The database went away under a request that would do its work again when it is repeated."
        "Look whether it had an effect before it is sent again, or send a `request_id`."
    ServerStopping "SERVER_STOPPING" Unavailable
        "The server is stopping."
        "Ask again, or ask another server."
    Unreadable "UNREADABLE" DataLoss
        "A row is damaged or was written by a newer server; it is left alone."
        "`kagzi doctor` names it."
    StoreDamaged "STORE_DAMAGED" DataLoss
        "The database is damaged."
        "`kagzi verify` says what is broken."
    Internal "INTERNAL" Internal
        "The server contradicts itself."
        "Report it as a bug, with the server's log."
}

impl Reason {
    /// The reason of this name. A newer server may know more.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|reason| reason.name() == name)
    }

    /// Whether a worker that is refused so must stop executing the run.
    pub const fn ends_execution(self) -> bool {
        matches!(self, Reason::LeaseLost | Reason::RunEnded | Reason::StepMismatch | Reason::RunNotFound)
    }
}

pub use kagzi_catalogue::codes::*;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_are_found_again() {
        let names: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();

        assert_eq!(names.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.name()), Some(*reason));
        }
        let codes: HashSet<&str> = FAILURE_CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), FAILURE_CODES.len());
    }
}
