"""A worker in another language: unary calls only, and nothing of Kagzi but its .proto files.

One run goes through everything that a worker can do: it is polled, records a step, fails a step once and is
polled again for the retry, sleeps and is polled again, completes. In between the claims that the protocol
makes are checked. It is also the shortest complete program for authors of SDKs: see docs/worker-protocol.md.
"""

import json
import os
import time

import grpc
from google.rpc import status_pb2
from kagzi.v1 import common_pb2 as common
from kagzi.v1 import event_pb2
from kagzi.v1 import worker_pb2 as work
from kagzi.v1 import worker_pb2_grpc
from kagzi.v1 import workflow_pb2 as flow
from kagzi.v1 import workflow_pb2_grpc

QUEUE, TYPE = "python", "order"
JSON = "application/json"


class Lease:
    """A run that was polled: the right to write to it, until a newer epoch exists."""

    def __init__(self, workers, polled):
        self.workers, self.run_id, self.epoch = workers, polled.run_id, polled.lease_epoch
        self.input = json.loads(polled.workflow_input)
        self.journal = {entry.step.path: entry for entry in polled.journal}
        token = polled.journal_page_token
        while token:  # More is recorded than one answer holds.
            page = workers.ReadJournal(work.ReadJournalRequest(**self.fields(page_token=token)))
            self.journal.update({entry.step.path: entry for entry in page.journal})
            token = page.next_page_token

    def fields(self, **more):
        return dict(run_id=self.run_id, lease_epoch=self.epoch, **more)

    def begin(self, step, position):
        return self.workers.BeginStep(work.BeginStepRequest(**self.fields(step_id=step, position=position)))

    def complete(self, step, position, result):
        output = json.dumps(result).encode()
        fields = self.fields(step_id=step, position=position, output=output, content_type=JSON)
        return self.workers.CompleteStep(work.CompleteStepRequest(**fields))

    def report(self, step, position, progress):
        fields = self.fields(step_id=step, position=position, progress=common.Payload(data=progress))
        return self.workers.ReportStepProgress(work.ReportStepProgressRequest(**fields))

    def fail(self, step, position, error, policy):
        fields = self.fields(step_id=step, position=position, error=error, error_code="BUSY")
        return self.workers.FailStep(work.FailStepRequest(**fields, retry_policy=policy))

    def sleep(self, step, position, ms):
        fields = self.fields(step_id=step, position=position, duration_ms=ms)
        return self.workers.ScheduleSleep(work.ScheduleSleepRequest(**fields))

    def finish(self, result):
        fields = self.fields(output=json.dumps(result).encode(), content_type=JSON)
        return self.workers.CompleteWorkflow(work.CompleteWorkflowRequest(**fields))


def refused(code, call):
    """The message of a call that must be refused with this code."""
    return refused_with(code, call).details()


def refused_with(code, call):
    """The error of a call that must be refused with this code."""
    try:
        answer = call()
    except grpc.RpcError as error:
        assert error.code() == code, f"refused with {error.code()}: {error.details()}"
        return error
    raise AssertionError(f"accepted: {answer}")


def reason_of(error):
    """What programs compare: the first field of the ErrorInfo in the details of the status."""
    trailers = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    info = next(detail.value for detail in status.details if detail.type_url.endswith("google.rpc.ErrorInfo"))
    assert info[0] == 0x0A, info
    return info[2 : 2 + info[1]].decode()


def kind_of(event):
    """The word that people read: EVENT_KIND_RUN_STARTED is run_started."""
    return event_pb2.EventKind.Name(event.kind).removeprefix("EVENT_KIND_").lower()


def claim(name):
    print(f"ok: {name}", flush=True)


def main():
    channel = grpc.insecure_channel(os.environ["KAGZI_ADDRESS"])
    workers = worker_pb2_grpc.WorkerServiceStub(channel)
    flows = workflow_pb2_grpc.WorkflowServiceStub(channel)

    registered = workers.RegisterWorker(
        work.RegisterWorkerRequest(
            task_queue=QUEUE,
            workflow_types=[TYPE],
            hostname="python-test",
            pid=os.getpid(),
            version="1.0",
            max_concurrent=1,
            labels={"language": "python"},
        )
    )
    worker_id = registered.worker_id
    assert registered.heartbeat_interval_secs > 0 and registered.stale_after_secs > 0
    claim("a worker registers and is told how often to send heartbeats")

    def poll(timeout_ms=10_000):
        request = work.PollActivityRequest(
            worker_id=worker_id, task_queue=QUEUE, supported_workflow_types=[TYPE], timeout_ms=timeout_ms
        )
        return workers.PollActivity(request)

    def beat(*leases):
        runs = [common.LeaseRef(run_id=lease.run_id, epoch=lease.epoch) for lease in leases]
        return workers.WorkerHeartbeat(work.WorkerHeartbeatRequest(worker_id=worker_id, runs=runs))

    assert poll(timeout_ms=100).run_id == ""
    claim("a poll without work ends at its timeout")

    start = flow.StartWorkflowRequest(
        business_id="python-order-42",
        task_queue=QUEUE,
        workflow_type=TYPE,
        input=common.Payload(data=b'{"item": "tea"}', content_type=JSON),
    )
    started = flows.StartWorkflow(start)
    assert not started.already_exists
    again = flows.StartWorkflow(start)
    assert (again.run_id, again.already_exists) == (started.run_id, True)
    claim("a start with the same id and input answers with the same run")

    first = Lease(workers, poll())
    assert first.run_id == started.run_id and first.input == {"item": "tea"} and not first.journal
    assert poll(timeout_ms=100).run_id == ""
    claim("a polled run is leased to one worker, with its input")

    begun = first.begin("reserve", 0)
    assert begun.should_execute and begun.attempt == 1
    assert not first.complete("reserve", 0, "shelf 7").already_recorded
    assert first.complete("reserve", 0, "shelf 8").already_recorded
    cached = first.begin("reserve", 0)
    assert not cached.should_execute and json.loads(cached.cached_result) == "shelf 7"
    claim("a step's result is recorded once, and a second one is not taken")

    answer = beat(first)
    assert answer.accepted and not answer.should_drain and not answer.lost
    claim("a heartbeat renews the lease that it lists")

    begun = first.begin("charge", 1)
    assert begun.should_execute and begun.attempt == 1
    key = begun.idempotency_key
    first.report("charge", 1, b"half")
    soon = common.RetryPolicy(maximum_attempts=3, initial_interval_ms=200)
    failed = first.fail("charge", 1, "the card reader is busy", soon)
    assert failed.scheduled_retry and failed.attempt == 1 and 0 < failed.retry_in_ms <= 200
    claim("a failed step is retried by its policy, and the lease ends")

    answer = beat(first)
    assert [lost.lease.epoch for lost in answer.lost] == [first.epoch]
    claim("a heartbeat is told of a lease that is lost")

    second = Lease(workers, poll())
    assert second.run_id == first.run_id and second.epoch > first.epoch
    assert json.loads(second.journal["reserve"].result.data) == "shelf 7"
    assert second.journal["charge"].status == common.STEP_STATUS_PENDING
    assert second.journal["charge"].attempts == 1
    claim("the run comes back under a higher epoch, with what is recorded")

    stale = grpc.StatusCode.FAILED_PRECONDITION
    for write in (
        lambda: first.begin("charge", 1),
        lambda: first.complete("charge", 1, "paid by a ghost"),
        lambda: first.finish("ghost"),
    ):
        assert reason_of(refused_with(stale, write)) == "LEASE_LOST"
    claim("a write under the old epoch is refused")

    begun = second.begin("charge", 1)
    assert begun.should_execute and begun.attempt == 2
    assert begun.idempotency_key == key and started.run_id in key
    assert begun.progress.data == b"half"
    second.complete("charge", 1, "paid")
    claim("the second attempt has the same idempotency key and reads the progress of the first")

    message = refused(stale, lambda: second.begin("charge", 5))
    assert "recorded" in message, message
    paused = flows.GetWorkflowRun(flow.GetWorkflowRunRequest(run_id=first.run_id)).workflow_run
    assert paused.status == common.WORKFLOW_STATUS_PAUSED
    claim("a recorded step at another position is refused, and the run waits for a person")

    flows.ResumeWorkflowRun(flow.ResumeWorkflowRunRequest(run_id=first.run_id))
    resumed = Lease(workers, poll())
    assert resumed.epoch > second.epoch and json.loads(resumed.journal["charge"].result.data) == "paid"
    claim("a person lets it go on, with what is recorded")

    slept = resumed.sleep("nap", 2, 500)
    assert not slept.already_over
    asleep = flows.GetWorkflowRun(flow.GetWorkflowRunRequest(run_id=first.run_id)).workflow_run
    assert asleep.status == common.WORKFLOW_STATUS_SLEEPING and asleep.locked_by == ""
    began = time.monotonic()
    third = Lease(workers, poll())
    assert time.monotonic() - began > 0.3, "the sleep was cut short"
    assert third.epoch > resumed.epoch and third.sleep("nap", 2, 500).already_over
    claim("a sleep ends the lease and the run comes back when it is over")

    assert third.begin("ship", 3).should_execute
    third.complete("ship", 3, "sent")
    third.finish({"charge": "paid"})
    ended = flows.WaitWorkflowRun(flow.WaitWorkflowRunRequest(run_id=first.run_id, timeout_ms=5_000))
    run = ended.workflow_run
    assert ended.finished and run.status == common.WORKFLOW_STATUS_COMPLETED
    assert json.loads(run.output.data) == {"charge": "paid"} and run.output.content_type == JSON
    assert run.dispatch_count == 4
    claim("the run completes with its output")

    attempts = flows.ListStepAttempts(flow.ListStepAttemptsRequest(run_id=first.run_id)).step_attempts
    seen = [(a.step.path, a.attempt, a.status, a.is_latest) for a in attempts]
    assert seen == [
        ("reserve", 1, common.STEP_STATUS_COMPLETED, True),
        ("charge", 1, common.STEP_STATUS_FAILED, False),
        ("charge", 2, common.STEP_STATUS_COMPLETED, True),
        ("nap", 1, common.STEP_STATUS_COMPLETED, True),
        ("ship", 1, common.STEP_STATUS_COMPLETED, True),
    ], seen
    claim("every attempt of every step is listed, oldest first")

    events = flows.ListRunEvents(flow.ListRunEventsRequest(run_id=first.run_id)).events
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    times = [event.at.ToNanoseconds() for event in events]
    assert times == sorted(times)
    named = [(kind_of(event), event.step) for event in events]
    kinds = [(kind, step) if step else kind for kind, step in named]
    assert kinds == [
        "run_started",
        "run_claimed",
        ("step_started", "reserve"),
        ("step_completed", "reserve"),
        ("step_started", "charge"),
        ("step_progressed", "charge"),
        ("step_failed", "charge"),
        "run_parked",
        "run_claimed",
        ("step_started", "charge"),
        ("step_completed", "charge"),
        "run_paused",
        "run_resumed",
        "run_claimed",
        ("sleep_scheduled", "nap"),
        "run_parked",
        "run_claimed",
        ("step_started", "ship"),
        ("step_completed", "ship"),
        "run_completed",
    ], kinds
    claim("the history is gapless and in order")

    waiting = flows.StartWorkflow(
        flow.StartWorkflowRequest(business_id="python-approval", task_queue=QUEUE, workflow_type=TYPE)
    )
    held = poll()
    assert held.run_id == waiting.run_id

    def await_signal(polled, timeout_ms=None):
        return workers.AwaitSignal(
            work.AwaitSignalRequest(
                lease=polled.lease,
                step=common.StepRef(path="approved", position=0),
                channel="approved",
                timeout_ms=timeout_ms,
            )
        )

    nothing = await_signal(held)
    assert nothing.parked and nothing.waited.outcome == work.WAIT_OUTCOME_WAITING
    assert poll(timeout_ms=100).run_id == ""
    signal = flow.SignalWorkflowRunRequest(
        run=common.RunRef(business_id="python-approval"),
        channel="approved",
        signal_id="one",
        payload=common.Payload(data=b'"ada"', content_type=JSON),
    )
    assert not flows.SignalWorkflowRun(signal).already_delivered
    assert flows.SignalWorkflowRun(signal).already_delivered
    held = poll()
    assert (held.run_id, held.lease_epoch) == (waiting.run_id, 2)
    told = await_signal(held)
    assert not told.parked and told.waited.outcome == work.WAIT_OUTCOME_TAKEN
    assert json.loads(told.waited.signal.data) == "ada"
    workers.CompleteWorkflow(
        work.CompleteWorkflowRequest(run_id=held.run_id, lease_epoch=held.lease_epoch, output=b'"ada"')
    )
    message = refused(stale, lambda: flows.SignalWorkflowRun(
        flow.SignalWorkflowRunRequest(
            run=common.RunRef(business_id="python-approval"), channel="approved", signal_id="two"
        )
    ))
    assert "ended" in message, message
    claim("a run waits for a signal without a worker, is told once, and refuses when it has ended")

    endless = flows.StartWorkflow(
        flow.StartWorkflowRequest(
            business_id="python-cart",
            task_queue=QUEUE,
            workflow_type=TYPE,
            input=common.Payload(data=b"[]", content_type=JSON),
        )
    )
    for item in ["tea", "milk", "cups"]:
        flows.SignalWorkflowRun(
            flow.SignalWorkflowRunRequest(
                run=common.RunRef(business_id="python-cart"),
                channel="item",
                signal_id=item,
                payload=common.Payload(data=json.dumps(item).encode(), content_type=JSON),
            )
        )
    for generation in [1, 2, 3]:
        held = poll()
        assert (held.run_id, held.generation, list(held.journal)) == (endless.run_id, generation, [])
        cart = json.loads(held.workflow_input)
        prefix = "" if generation == 1 else f"~{generation}/"
        request = work.AwaitSignalRequest(
            lease=held.lease, step=common.StepRef(path=f"{prefix}item", position=0), channel="item"
        )
        cart.append(json.loads(workers.AwaitSignal(request).waited.signal.data))
        input = common.Payload(data=json.dumps(cart).encode(), content_type=JSON)
        on = work.ContinueRunRequest(lease=held.lease, input=input)
        if generation == 3:
            large = common.Payload(data=b"x" * (3 * 1024 * 1024))
            refused(
                grpc.StatusCode.INVALID_ARGUMENT,
                lambda: workers.ContinueRun(work.ContinueRunRequest(lease=held.lease, input=large)),
            )
            workers.CompleteWorkflow(
                work.CompleteWorkflowRequest(lease=held.lease, output=json.dumps(cart).encode())
            )
            refused(stale, lambda: workers.ContinueRun(on))
        else:
            workers.ContinueRun(on)
            # The answer may be lost: sent again, it is recognised.
            workers.ContinueRun(on)
    ended = flows.GetWorkflowRun(flow.GetWorkflowRunRequest(run_id=endless.run_id)).workflow_run
    assert json.loads(ended.output.data) == ["tea", "milk", "cups"] and ended.generation == 3
    repeat = flow.SignalWorkflowRunRequest(
        run=common.RunRef(business_id="python-cart"), channel="item", signal_id="tea"
    )
    assert flows.SignalWorkflowRun(repeat).already_delivered
    claim("a run continues in place, keeps the signals that nobody took, and knows those that were")

    me = workers.GetWorker(work.GetWorkerRequest(worker_id=worker_id)).worker
    assert me.status == work.WORKER_STATUS_ONLINE and me.labels["language"] == "python"
    assert (me.active_count, me.total_completed, me.total_failed) == (0, 3, 0)
    left = workers.DeregisterWorker(work.DeregisterWorkerRequest(worker_id=worker_id))
    assert left.released == 0
    message = refused(stale, poll)
    assert "RegisterWorker" in message, message
    refused(grpc.StatusCode.NOT_FOUND, beat)
    claim("a worker that left is told to register again")


if __name__ == "__main__":
    main()
