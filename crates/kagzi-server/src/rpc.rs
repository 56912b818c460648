//! One file per RPC. Each reads its request, asks the engine and writes its answer. Below them stand the
//! services, each with its methods.

pub mod answer_intervention;
pub mod ask_workflow_run;
pub mod await_signal;
pub mod backfill_schedule;
pub mod beat_promise;
pub mod begin_step;
pub mod cancel_intervention;
pub mod cancel_workflow_run;
pub mod claim_intervention;
pub mod claim_key;
pub mod comment_intervention;
pub mod complete_promise;
pub mod complete_step;
pub mod complete_workflow;
pub mod continue_run;
pub mod create_namespace;
pub mod create_schedule;
pub mod create_trigger;
pub mod delete_contact;
pub mod delete_schedule;
pub mod delete_trigger;
pub mod deregister_worker;
pub mod disable_namespace;
pub mod drain_worker;
pub mod enable_namespace;
pub mod explain_workflow_run;
pub mod fail_step;
pub mod fail_workflow;
pub mod finish_key;
pub mod forget_key;
pub mod get_intervention;
pub mod get_key;
pub mod get_namespace;
pub mod get_run_value;
pub mod get_schedule;
pub mod get_server_info;
pub mod get_step_attempt;
pub mod get_worker;
pub mod get_workflow_run;
pub mod health_check;
pub mod limit_queue;
pub mod list_contacts;
pub mod list_interventions;
pub mod list_keys;
pub mod list_namespaces;
pub mod list_published_events;
pub mod list_queues;
pub mod list_run_events;
pub mod list_schedules;
pub mod list_step_attempts;
pub mod list_triggers;
pub mod list_workers;
pub mod list_workflow_runs;
pub mod make_promise;
pub mod next_schedule_times;
pub mod pause_queue;
pub mod pause_schedule;
pub mod poll_activity;
pub mod publish_event;
pub mod put_contact;
pub mod read_journal;
pub mod reassign_intervention;
pub mod register_worker;
pub mod release_intervention;
pub mod release_run;
pub mod report_step_progress;
pub mod restart_workflow_run;
pub mod resume_queue;
pub mod resume_schedule;
pub mod resume_workflow_run;
pub mod retry_workflow_run;
pub mod schedule_sleep;
pub mod schedule_spec;
pub mod set_label;
pub mod set_value;
pub mod signal_workflow_run;
pub mod snooze_intervention;
pub mod start_child;
pub mod start_workflow;
pub mod start_workflows;
pub mod take_worker_offline;
pub mod terminate_workflow_run;
pub mod trigger_schedule;
pub mod update_namespace;
pub mod update_schedule;
pub mod wait_workflow_run;
pub mod watch_queues;
pub mod watch_run;
pub mod watch_runs;
pub mod worker_heartbeat;

use kagzi_proto::v1::{
    self, admin_service_server::AdminService, intervention_service_server::InterventionService,
    schedule_service_server::ScheduleService, worker_service_server::WorkerService,
    workflow_service_server::WorkflowService,
};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    caller, conversation,
    services::{Services, service},
    watch, work_stream,
};

service! {
    WorkflowService {
        async fn start_workflow(
            &self,
            request: Request<v1::StartWorkflowRequest>,
        ) -> Result<Response<v1::StartWorkflowResponse>, Status> {
            let call = self.tracer.called("StartWorkflow", request.metadata());
            let started =
                start_workflow::handle(&self.engine, request.into_inner(), call.traceparent()).await;
            call.answered(started.as_ref().map(|started| started.run_id.as_str()));
            started.map(Response::new)
        }

        async fn start_workflows(
            &self,
            request: Request<v1::StartWorkflowsRequest>,
        ) -> Result<Response<v1::StartWorkflowsResponse>, Status> {
            let call = self.tracer.called("StartWorkflows", request.metadata());
            let started =
                start_workflows::handle(&self.engine, request.into_inner(), call.traceparent()).await;
            call.answered(started.as_ref().map(|_| ""));
            started.map(Response::new)
        }

        async fn wait_workflow_run(
            &self,
            request: Request<v1::WaitWorkflowRunRequest>,
        ) -> Result<Response<v1::WaitWorkflowRunResponse>, Status> {
            self.until_stopped(wait_workflow_run::handle(&self.engine, request.into_inner())).await
        }

        async fn ask_workflow_run(
            &self,
            request: Request<v1::AskWorkflowRunRequest>,
        ) -> Result<Response<v1::AskWorkflowRunResponse>, Status> {
            let (metadata, _, request) = request.into_parts();
            let asked = caller::of(&metadata, ask_workflow_run::handle(&self.engine, request));
            self.until_stopped(asked).await
        }

        type WatchRunStream = watch::Outgoing<v1::WatchRunResponse>;

        async fn watch_run(
            &self,
            request: Request<v1::WatchRunRequest>,
        ) -> Result<Response<Self::WatchRunStream>, Status> {
            watch_run::open(self, request.into_inner()).await.map(Response::new)
        }

        type WatchRunsStream = watch::Outgoing<v1::WatchRunsResponse>;

        async fn watch_runs(
            &self,
            request: Request<v1::WatchRunsRequest>,
        ) -> Result<Response<Self::WatchRunsStream>, Status> {
            watch_runs::open(self, request.into_inner()).map(Response::new)
        }

        type ConverseStream = conversation::Outgoing;

        async fn converse(
            &self,
            request: Request<Streaming<v1::ConverseRequest>>,
        ) -> Result<Response<Self::ConverseStream>, Status> {
            Ok(Response::new(conversation::open(self.clone(), request.into_inner())))
        }
    }
    get_workflow_run(GetWorkflowRunRequest) -> GetWorkflowRunResponse,
    list_workflow_runs(ListWorkflowRunsRequest) -> ListWorkflowRunsResponse,
    cancel_workflow_run(CancelWorkflowRunRequest) -> CancelWorkflowRunResponse,
    signal_workflow_run(SignalWorkflowRunRequest) -> SignalWorkflowRunResponse,
    publish_event(PublishEventRequest) -> PublishEventResponse,
    complete_promise(CompletePromiseRequest) -> CompletePromiseResponse,
    beat_promise(BeatPromiseRequest) -> BeatPromiseResponse,
    get_run_value(GetRunValueRequest) -> GetRunValueResponse,
    terminate_workflow_run(TerminateWorkflowRunRequest) -> TerminateWorkflowRunResponse,
    retry_workflow_run(RetryWorkflowRunRequest) -> RetryWorkflowRunResponse,
    restart_workflow_run(RestartWorkflowRunRequest) -> RestartWorkflowRunResponse,
    resume_workflow_run(ResumeWorkflowRunRequest) -> ResumeWorkflowRunResponse,
    explain_workflow_run(ExplainWorkflowRunRequest) -> ExplainWorkflowRunResponse,
    list_run_events(ListRunEventsRequest) -> ListRunEventsResponse,
    get_step_attempt(GetStepAttemptRequest) -> GetStepAttemptResponse,
    list_step_attempts(ListStepAttemptsRequest) -> ListStepAttemptsResponse,
    claim_key(ClaimKeyRequest) -> ClaimKeyResponse,
    finish_key(FinishKeyRequest) -> FinishKeyResponse,
    get_key(GetKeyRequest) -> GetKeyResponse,
    list_keys(ListKeysRequest) -> ListKeysResponse,
    forget_key(ForgetKeyRequest) -> ForgetKeyResponse,
}

service! {
    WorkerService {
        type WorkStream = work_stream::Outgoing;

        async fn work(
            &self,
            request: Request<Streaming<v1::WorkerMessage>>,
        ) -> Result<Response<Self::WorkStream>, Status> {
            Ok(Response::new(work_stream::open(self.clone(), request.into_inner())))
        }

        async fn poll_activity(
            &self,
            request: Request<v1::PollActivityRequest>,
        ) -> Result<Response<v1::PollActivityResponse>, Status> {
            let polled = poll_activity::handle(&self.engine, &self.tracer, request.into_inner());
            self.until_stopped(polled).await
        }
    }
    register_worker(RegisterWorkerRequest) -> RegisterWorkerResponse,
    worker_heartbeat(WorkerHeartbeatRequest) -> WorkerHeartbeatResponse,
    deregister_worker(DeregisterWorkerRequest) -> DeregisterWorkerResponse,
    list_workers(ListWorkersRequest) -> ListWorkersResponse,
    get_worker(GetWorkerRequest) -> GetWorkerResponse,
    drain_worker(DrainWorkerRequest) -> DrainWorkerResponse,
    take_worker_offline(TakeWorkerOfflineRequest) -> TakeWorkerOfflineResponse,
    read_journal(ReadJournalRequest) -> ReadJournalResponse,
    begin_step(BeginStepRequest) -> BeginStepResponse,
    report_step_progress(ReportStepProgressRequest) -> ReportStepProgressResponse,
    complete_step(CompleteStepRequest) -> CompleteStepResponse,
    set_label(SetLabelRequest) -> SetLabelResponse,
    set_value(SetValueRequest) -> SetValueResponse,
    make_promise(MakePromiseRequest) -> MakePromiseResponse,
    fail_step(FailStepRequest) -> FailStepResponse,
    complete_workflow(CompleteWorkflowRequest) -> CompleteWorkflowResponse,
    continue_run(ContinueRunRequest) -> ContinueRunResponse,
    fail_workflow(FailWorkflowRequest) -> FailWorkflowResponse,
    schedule_sleep(ScheduleSleepRequest) -> ScheduleSleepResponse,
    await_signal(AwaitSignalRequest) -> AwaitSignalResponse,
    start_child(StartChildRequest) -> StartChildResponse,
    release_run(ReleaseRunRequest) -> ReleaseRunResponse,
}

service! {
    ScheduleService {}
    create_schedule(CreateScheduleRequest) -> CreateScheduleResponse,
    update_schedule(UpdateScheduleRequest) -> UpdateScheduleResponse,
    get_schedule(GetScheduleRequest) -> GetScheduleResponse,
    list_schedules(ListSchedulesRequest) -> ListSchedulesResponse,
    delete_schedule(DeleteScheduleRequest) -> DeleteScheduleResponse,
    pause_schedule(PauseScheduleRequest) -> PauseScheduleResponse,
    resume_schedule(ResumeScheduleRequest) -> ResumeScheduleResponse,
    trigger_schedule(TriggerScheduleRequest) -> TriggerScheduleResponse,
    backfill_schedule(BackfillScheduleRequest) -> BackfillScheduleResponse,
    next_schedule_times(NextScheduleTimesRequest) -> NextScheduleTimesResponse,
}

service! {
    InterventionService {}
    list_interventions(ListInterventionsRequest) -> ListInterventionsResponse,
    get_intervention(GetInterventionRequest) -> GetInterventionResponse,
    answer_intervention(AnswerInterventionRequest) -> AnswerInterventionResponse,
    claim_intervention(ClaimInterventionRequest) -> ClaimInterventionResponse,
    release_intervention(ReleaseInterventionRequest) -> ReleaseInterventionResponse,
    reassign_intervention(ReassignInterventionRequest) -> ReassignInterventionResponse,
    snooze_intervention(SnoozeInterventionRequest) -> SnoozeInterventionResponse,
    comment_intervention(CommentInterventionRequest) -> CommentInterventionResponse,
    cancel_intervention(CancelInterventionRequest) -> CancelInterventionResponse,
    put_contact(PutContactRequest) -> PutContactResponse,
    list_contacts(ListContactsRequest) -> ListContactsResponse,
    delete_contact(DeleteContactRequest) -> DeleteContactResponse,
}

service! {
    AdminService {
        async fn health_check(
            &self,
            _: Request<v1::HealthCheckRequest>,
        ) -> Result<Response<v1::HealthCheckResponse>, Status> {
            Ok(Response::new(health_check::handle(&self.progress).await))
        }

        type WatchQueuesStream = watch::Outgoing<v1::WatchQueuesResponse>;

        async fn watch_queues(
            &self,
            request: Request<v1::WatchQueuesRequest>,
        ) -> Result<Response<Self::WatchQueuesStream>, Status> {
            watch_queues::open(self, request.into_inner()).map(Response::new)
        }
    }
    get_server_info(GetServerInfoRequest) -> GetServerInfoResponse,
    create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse,
    get_namespace(GetNamespaceRequest) -> GetNamespaceResponse,
    list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse,
    update_namespace(UpdateNamespaceRequest) -> UpdateNamespaceResponse,
    disable_namespace(DisableNamespaceRequest) -> DisableNamespaceResponse,
    enable_namespace(EnableNamespaceRequest) -> EnableNamespaceResponse,
    list_published_events(ListPublishedEventsRequest) -> ListPublishedEventsResponse,
    create_trigger(CreateTriggerRequest) -> CreateTriggerResponse,
    list_triggers(ListTriggersRequest) -> ListTriggersResponse,
    delete_trigger(DeleteTriggerRequest) -> DeleteTriggerResponse,
    list_queues(ListQueuesRequest) -> ListQueuesResponse,
    pause_queue(PauseQueueRequest) -> PauseQueueResponse,
    resume_queue(ResumeQueueRequest) -> ResumeQueueResponse,
    limit_queue(LimitQueueRequest) -> LimitQueueResponse,
}
