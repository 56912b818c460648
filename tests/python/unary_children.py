"""A worker in another language whose runs start other runs and wait for a promise, by unary calls only.

The run `order` has a child on the same queue, waits for it without a worker, starts a second one that it
waits for later, detaches a third, and waits for a promise that somebody completes with its token. One worker
does all of it: a run that waits holds no slot. See docs/worker-protocol.md.
"""

import json
import os

import grpc
from kagzi.v1 import common_pb2 as common
from kagzi.v1 import worker_pb2 as work
from kagzi.v1 import worker_pb2_grpc
from kagzi.v1 import workflow_pb2 as flow
from kagzi.v1 import workflow_pb2_grpc
from unary_worker import JSON, claim, refused

QUEUE = "python-families"


def payload(value):
    return common.Payload(data=json.dumps(value).encode(), content_type=JSON)


class Family:
    """What this worker may ask for, with one slot."""

    def __init__(self, channel):
        self.workers = worker_pb2_grpc.WorkerServiceStub(channel)
        self.flows = workflow_pb2_grpc.WorkflowServiceStub(channel)
        registration = work.RegisterWorkerRequest(
            task_queue=QUEUE, workflow_types=["order", "label"], max_concurrent=1
        )
        self.worker_id = self.workers.RegisterWorker(registration).worker_id

    def poll(self, timeout_ms=10_000):
        request = work.PollActivityRequest(worker_id=self.worker_id, task_queue=QUEUE, timeout_ms=timeout_ms)
        request.supported_workflow_types.extend(["order", "label"])
        return self.workers.PollActivity(request)

    def child(self, held, path, position, mode, input, **more):
        start = flow.StartWorkflowRequest(workflow_type="label", input=payload(input))
        step = common.StepRef(path=path, position=position)
        return self.workers.StartChild(
            work.StartChildRequest(lease=held.lease, step=step, start=start, mode=mode, **more)
        )

    def wait(self, held, path, position, channel):
        step = common.StepRef(path=path, position=position)
        return self.workers.AwaitSignal(
            work.AwaitSignalRequest(lease=held.lease, step=step, channel=channel)
        )

    def complete(self, held, output):
        request = work.CompleteWorkflowRequest(lease=held.lease, output=json.dumps(output).encode())
        self.workers.CompleteWorkflow(request)

    def run(self, run_id):
        return self.flows.GetWorkflowRun(flow.GetWorkflowRunRequest(run_id=run_id)).workflow_run


def main():
    family = Family(grpc.insecure_channel(os.environ["KAGZI_ADDRESS"]))
    workers, flows = family.workers, family.flows
    order = flows.StartWorkflow(
        flow.StartWorkflowRequest(task_queue=QUEUE, workflow_type="order", input=payload("tea"))
    )

    # Await: the call starts the child, and the lease ends.
    held = family.poll()
    assert held.run_id == order.run_id
    label = family.child(held, "label", 0, work.CHILD_MODE_AWAIT, "tea")
    assert label.parked and label.waited.outcome == work.WAIT_OUTCOME_WAITING
    child = family.run(label.run_id)
    assert (child.task_queue, child.parent_run_id) == (QUEUE, order.run_id)
    # The answer may be lost: sent again, it is recognised.
    assert family.child(held, "label", 0, work.CHILD_MODE_AWAIT, "tea") == label
    claim("a child is started on the queue of its parent, which holds no worker while it waits")

    held = family.poll()
    assert held.run_id == label.run_id, "the one slot is free for the child"
    family.complete(held, "label of tea")
    held = family.poll()
    assert (held.run_id, held.lease_epoch) == (order.run_id, 2)
    entry = held.journal[0]
    assert (entry.status, entry.child_run_id) == (common.STEP_STATUS_COMPLETED, label.run_id)
    again = family.child(held, "label", 0, work.CHILD_MODE_AWAIT, "tea")
    assert again.run_id == label.run_id and not again.parked
    assert again.waited.outcome == work.WAIT_OUTCOME_TAKEN
    assert json.loads(again.waited.signal.data) == json.loads(entry.result.data) == "label of tea"
    claim("the end of the child wakes its parent, and the same call answers with the output")

    # Start: only the start is recorded. The end is told on a channel of the child's, also to who asks late.
    later = family.child(held, "later", 1, work.CHILD_MODE_START, "milk")
    assert later.run_id and not later.parked and not later.HasField("waited")
    assert family.child(held, "later", 1, work.CHILD_MODE_START, "milk").run_id == later.run_id
    detached = family.child(held, "audit", 2, work.CHILD_MODE_DETACH, "audit")
    refused(
        grpc.StatusCode.INVALID_ARGUMENT,
        lambda: family.child(held, "other", 3, work.CHILD_MODE_START, "tea", timeout_ms=5),
    )
    assert family.wait(held, "later.result", 3, f"~child/{later.run_id}").parked
    for _ in range(2):
        held = family.poll()
        if held.run_id == later.run_id:
            no = work.FailWorkflowRequest(lease=held.lease, error="no paper", error_code="NO_PAPER")
            workers.FailWorkflow(no)
        else:
            assert held.run_id == detached.run_id
            break
    family.complete(held, "noted")
    held = family.poll()
    assert held.run_id == order.run_id
    told = family.wait(held, "later.result", 3, f"~child/{later.run_id}").waited
    assert told.outcome == work.WAIT_OUTCOME_TAKEN and told.failure.code == "NO_PAPER", told
    claim("a child that was started is waited for on its channel, and its failure has its own code")

    step = common.StepRef(path="payment", position=4)
    promise = work.MakePromiseRequest(lease=held.lease, step=step, name="payment")
    token = workers.MakePromise(promise).token
    assert token and workers.MakePromise(promise).token == token
    assert family.wait(held, "payment.wait", 5, "~promise/payment").parked
    done = flow.CompletePromiseRequest(token=token, payload=payload("paid"))
    first = flows.CompletePromise(done)
    assert (first.run_id, first.name, first.already_completed) == (order.run_id, "payment", False)
    assert flows.CompletePromise(done).already_completed
    held = family.poll()
    paid = family.wait(held, "payment.wait", 5, "~promise/payment").waited
    assert paid.outcome == work.WAIT_OUTCOME_TAKEN and json.loads(paid.signal.data) == "paid"
    claim("a promise is made once, completed once by its token, and wakes the run")

    # What lives when the parent ends is cancelled, unless it was detached.
    living = family.child(held, "living", 6, work.CHILD_MODE_START, "cups")
    family.complete(held, "sent")
    ended = flows.WaitWorkflowRun(flow.WaitWorkflowRunRequest(run_id=living.run_id, timeout_ms=10_000))
    assert ended.finished and ended.workflow_run.status == common.WORKFLOW_STATUS_CANCELLED
    assert family.run(detached.run_id).status == common.WORKFLOW_STATUS_COMPLETED
    claim("a child that lives when its parent ends is cancelled")
    workers.DeregisterWorker(work.DeregisterWorkerRequest(worker_id=family.worker_id))


if __name__ == "__main__":
    main()
