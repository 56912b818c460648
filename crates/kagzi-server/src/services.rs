//! The gRPC services: each method hands over to its own file.

use std::sync::Arc;

use kagzi_engine::Engine;
use kagzi_model::Millis;
use kagzi_proto::{
    Reason,
    v1::{
        self, admin_service_server::AdminService, schedule_service_server::ScheduleService,
        worker_service_server::WorkerService, workflow_service_server::WorkflowService,
    },
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    caller, check::PayloadLimits, conversation, readiness::Progress, rpc, trace::Tracer, watch, work_stream,
};

/// Everything that the services share.
#[derive(Clone)]
pub struct Services {
    pub engine: Engine,
    /// Ends worker streams when the server stops.
    pub stop: CancellationToken,
    pub tracer: Tracer,
    /// Whether the store makes progress.
    pub progress: Arc<Progress>,
    /// Room for watches.
    pub watches: watch::Room,
}

impl Services {
    /// Awaits a call that may wait for a minute: it must not keep the server from stopping.
    async fn until_stopped<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<Response<T>, Status> {
        tokio::select! {
            biased;
            answer = call => answer.map(Response::new),
            () = self.stop.cancelled() => Err(Reason::ServerStopping.status("the server is stopping; ask \
                again")),
        }
    }
}

/// The payload limits in force.
pub fn limits(engine: &Engine) -> PayloadLimits {
    PayloadLimits::of(engine)
}

/// The heartbeat interval that workers are told.
pub fn heartbeat_interval_ms(engine: &Engine) -> Millis {
    i64::try_from(engine.settings().heartbeat_interval.as_millis()).unwrap_or(i64::MAX)
}

/// Implements a service whose methods each live in a file of their own; what differs stands in the braces.
macro_rules! service {
    (
        $service:ident { $($own:tt)* }
        $($method:ident($request:ident) -> $response:ident),+ $(,)?
    ) => {
        #[tonic::async_trait]
        impl $service for Services {
            $($own)*

            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let (metadata, _, request) = request.into_parts();
                let call = rpc::$method::handle(&self.engine, request);
                caller::of(&metadata, call).await.map(Response::new)
            })+
        }
    };
}

service! {
    WorkflowService {
        async fn start_workflow(
            &self,
            request: Request<v1::StartWorkflowRequest>,
        ) -> Result<Response<v1::StartWorkflowResponse>, Status> {
            let call = self.tracer.called("StartWorkflow", request.metadata());
            let started =
                rpc::start_workflow::handle(&self.engine, request.into_inner(), call.traceparent()).await;
            call.answered(started.as_ref().map(|started| started.run_id.as_str()));
            started.map(Response::new)
        }

        async fn start_workflows(
            &self,
            request: Request<v1::StartWorkflowsRequest>,
        ) -> Result<Response<v1::StartWorkflowsResponse>, Status> {
            let call = self.tracer.called("StartWorkflows", request.metadata());
            let started =
                rpc::start_workflows::handle(&self.engine, request.into_inner(), call.traceparent()).await;
            call.answered(started.as_ref().map(|_| ""));
            started.map(Response::new)
        }

        async fn wait_workflow_run(
            &self,
            request: Request<v1::WaitWorkflowRunRequest>,
        ) -> Result<Response<v1::WaitWorkflowRunResponse>, Status> {
            self.until_stopped(rpc::wait_workflow_run::handle(&self.engine, request.into_inner())).await
        }

        async fn ask_workflow_run(
            &self,
            request: Request<v1::AskWorkflowRunRequest>,
        ) -> Result<Response<v1::AskWorkflowRunResponse>, Status> {
            let (metadata, _, request) = request.into_parts();
            let asked = caller::of(&metadata, rpc::ask_workflow_run::handle(&self.engine, request));
            self.until_stopped(asked).await
        }

        type WatchRunStream = watch::Outgoing<v1::WatchRunResponse>;

        async fn watch_run(
            &self,
            request: Request<v1::WatchRunRequest>,
        ) -> Result<Response<Self::WatchRunStream>, Status> {
            rpc::watch_run::open(self, request.into_inner()).await.map(Response::new)
        }

        type WatchRunsStream = watch::Outgoing<v1::WatchRunsResponse>;

        async fn watch_runs(
            &self,
            request: Request<v1::WatchRunsRequest>,
        ) -> Result<Response<Self::WatchRunsStream>, Status> {
            rpc::watch_runs::open(self, request.into_inner()).map(Response::new)
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
            let polled = rpc::poll_activity::handle(&self.engine, &self.tracer, request.into_inner());
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
    AdminService {
        async fn health_check(
            &self,
            _: Request<v1::HealthCheckRequest>,
        ) -> Result<Response<v1::HealthCheckResponse>, Status> {
            Ok(Response::new(rpc::health_check::handle(&self.progress).await))
        }

        type WatchQueuesStream = watch::Outgoing<v1::WatchQueuesResponse>;

        async fn watch_queues(
            &self,
            request: Request<v1::WatchQueuesRequest>,
        ) -> Result<Response<Self::WatchQueuesStream>, Status> {
            rpc::watch_queues::open(self, request.into_inner()).map(Response::new)
        }
    }
    get_server_info(GetServerInfoRequest) -> GetServerInfoResponse,
    create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse,
    get_namespace(GetNamespaceRequest) -> GetNamespaceResponse,
    list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse,
    update_namespace(UpdateNamespaceRequest) -> UpdateNamespaceResponse,
    disable_namespace(DisableNamespaceRequest) -> DisableNamespaceResponse,
    enable_namespace(EnableNamespaceRequest) -> EnableNamespaceResponse,
    list_queues(ListQueuesRequest) -> ListQueuesResponse,
    pause_queue(PauseQueueRequest) -> PauseQueueResponse,
    resume_queue(ResumeQueueRequest) -> ResumeQueueResponse,
    limit_queue(LimitQueueRequest) -> LimitQueueResponse,
}
