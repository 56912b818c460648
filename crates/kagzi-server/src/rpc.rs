//! One file per RPC. Each reads its request, asks the engine and writes its answer.

pub mod begin_step;
pub mod cancel_workflow_run;
pub mod complete_step;
pub mod complete_workflow;
pub mod deregister_worker;
pub mod drain_worker;
pub mod explain_workflow_run;
pub mod fail_step;
pub mod fail_workflow;
pub mod find_run;
pub mod get_step_attempt;
pub mod get_worker;
pub mod get_workflow_run;
pub mod list_run_events;
pub mod list_step_attempts;
pub mod list_workers;
pub mod list_workflow_runs;
pub mod poll_activity;
pub mod register_worker;
pub mod release_run;
pub mod resume_workflow_run;
pub mod schedule_sleep;
pub mod start_workflow;
pub mod start_workflows;
pub mod wait_workflow_run;
pub mod worker_heartbeat;
