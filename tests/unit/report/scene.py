"""A run in which everything happens that a history can hold, as steps."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from io_harness import trace
from io_harness.report.gather import Report
from io_harness.workflows.approvals import Decision
from io_harness.workflows.briefing import Briefing, ToolDefinition
from io_harness.workflows.egress import EgressCount
from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    MalformedToolCall,
    ModelRef,
    Observation,
    Reasoning,
    Text,
    ToolCall,
)
from io_harness.workflows.payloads import (
    ApprovalRequest,
    Completion,
    NeedsApproval,
    Prepared,
    ToolDone,
)
from io_harness.workflows.result import (
    CheckReport,
    FileChange,
    IsolationReport,
    Landed,
    Outcome,
    RunResult,
    Spend,
    Usage,
    VerificationReport,
)
from io_harness.workflows.rules import Reason, Rule

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
WHY = Reason(effect="ask", rule="default", layer="careful")
DIFF = """\
diff --git a/calc.py b/calc.py
index 1111111..2222222 100644
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@ calc
 def add(a, b):
-    return a - b
+    return a + b
"""
MODEL = ModelRef(provider="anthropic", name="claude-sonnet-4-5")
ISOLATION = IsolationReport(
    backend="linux-bubblewrap", levels={"fs_write": "enforced", "memory": "partial"}
)
EGRESS = (
    EgressCount(by="harness", host="api.example", port=443, allowed=2),
    EgressCount(by="commands", host="evil.example", port=80, denied=1, why="was refused"),
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def call(seconds: float, took: float = 1, summary: str = "did it") -> dict[str, object]:
    return {"at": at(seconds), "seconds": took, "attempts": 1, "summary": summary}


def began(goal: str = "Make add right. It subtracts.") -> trace.Began:
    contract = {"goal": goal, "constraints": ["Keep the name."], "policy": "careful"}
    return trace.Began.model_validate({
        "at": START, "workflow_id": "fix-add", "run_id": "run-1", "part": 1, "goal": goal,
        "contract": contract,
    })  # fmt: skip


def prepared() -> trace.PreparedStep:
    found = Prepared(base="b" * 40, repo="calc", isolation=ISOLATION)
    return trace.PreparedStep.model_validate({**call(2), "prepared": found})


def admitted() -> trace.AdmittedStep:
    tool = ToolDefinition(
        name="edit_file", description="Change a file.", input_schema={"type": "object"}
    )
    told = Briefing(system="You carry out one task.", tools=(tool,))
    return trace.AdmittedStep.model_validate({**call(1, 0.1), "briefing": told})


def said(seconds: float, step: int, *parts: AssistantPart) -> trace.ModelStep:
    completion = Completion(
        message=AssistantMessage(parts=parts, served_by=MODEL),
        finish="tool_use",
        usage=Usage(input=100, cached=50, cache_write=10, output=20, reasoning=5),
        cost_usd=Decimal("0.0123"),
        egress=EGRESS[:1],
    )
    return trace.ModelStep.model_validate(
        {**call(seconds), "step": step, "purpose": "turn", "completion": completion}
    )


def request(act: str, target: str, digest: str, kind: str = "command") -> ApprovalRequest:
    return ApprovalRequest.model_validate({
        "act": act, "target": target, "tool": "run_command", "why": WHY, "preview_kind": kind,
        "preview": DIFF if kind == "diff" else target, "digest": digest * 64,
        "suggestion": Rule(effect="allow", act="exec", target="make *") if act == "exec" else None,
    })  # fmt: skip


def used(
    seconds: float, step: int, tool: ToolCall, outcome: ToolDone | NeedsApproval
) -> trace.ToolStep:
    return trace.ToolStep.model_validate(
        {**call(seconds, summary=f"{tool.name} x"), "step": step, "call": tool, "outcome": outcome}
    )


def done(text: str, **more: object) -> ToolDone:
    return ToolDone.model_validate(
        {"head": "c" * 40, "observation": Observation(text=text), **more}
    )


def decided(seconds: float, request_id: str, verdict: str, **more: object) -> trace.DecidedStep:
    decision = Decision.model_validate({"request": request_id, "verdict": verdict, **more})
    return trace.DecidedStep(at=at(seconds), via="signal", decision=decision, identity="4@host")


def verified(seconds: float, verdict: str) -> trace.VerifiedStep:
    check = CheckReport.model_validate({
        "kind": "command", "verdict": verdict, "summary": "pytest exited", "detail": "E  2 != 5",
        "seconds": 0.5,
    })  # fmt: skip
    report = VerificationReport.model_validate(
        {"verdict": verdict, "checks": (check,), "snapshot": "c" * 40}
    )
    return trace.VerifiedStep.model_validate({**call(seconds), "report": report})


EDIT = ToolCall(id="t1", name="edit_file", arguments={"path": "calc.py", "new": "a\nb"})
RUN = ToolCall(id="t2", name="run_command", arguments={"command": "make test", "seconds": 5})
READ = ToolCall(id="t3", name="read_file", arguments={"path": ".env"})
ASK = ToolCall(id="t4", name="ask_user", arguments={"question": "Which table?"})
FINISH = ToolCall(id="t5", name="finish", arguments={"summary": "add adds"})
BROKEN = MalformedToolCall(id="t6", name="edit_file", raw="{oops", error="not JSON")
THOUGHT = Reasoning(provider="anthropic", text="it subtracts", data={})


def steps() -> list[trace.Step]:
    refused = Reason(effect="deny", rule="deny read .env", layer="secrets")
    failed = trace.FailedStep.model_validate({
        **call(30), "activity": "complete", "how": "failed", "code": "RateLimited",
        "message": "slow down", "last_failure": "before",
    })  # fmt: skip
    return [
        began(),
        admitted(),
        prepared(),
        said(4, 1, THOUGHT, Text(text="Looking.\nThen mending."), EDIT, RUN, READ, BROKEN),
        used(5, 1, EDIT, done("edited", changed=(
            FileChange(path="calc.py", status="modified", added=1, removed=1),))),
        used(6, 1, RUN, NeedsApproval(requests=(request("exec", "make test", "a"),))),
        decided(16, "1.1-" + "a" * 12, "approve", by="ann", reason="go on", remember=True),
        decided(17, "1.1-" + "a" * 12, "deny", by="bob"),
        used(18, 1, RUN, done("ran", egress=EGRESS[1:])),
        used(19, 1, READ, done("refused: no", refused=refused)),
        said(22, 2, ASK, FINISH),
        decided(25, "2.0-" + "q" * 12, "approve", by="ann", reason="the staging table"),
        verified(27, "failed"),
        failed,
        trace.ChildStep(at=at(31), workflow_id="fix-add/1", workflow_type="AgentRun", what="started"),
        trace.ContinuedStep(at=at(32), new_run_id="run-2"),
        began().model_copy(update={"part": 2, "run_id": "run-2", "at": at(32)}),
        said(34, 3, Text(text="Done."), FINISH),
        verified(36, "passed"),
        trace.LandedStep.model_validate({
            **call(37), "report": NeedsApproval(requests=(request("land", "main", "d", "diff"),)),
        }),
    ]  # fmt: skip


def end() -> list[trace.Step]:
    landed = Landed(
        mode="branch", where="fix/add", diff=DIFF,
        files=(FileChange(path="calc.py", status="modified", added=1, removed=1),),
    )  # fmt: skip
    result = RunResult(
        outcome=Outcome.SUCCESS, reason="verified and landed", summary="add adds", answer={"n": 1},
        ref="refs/io-harness/x/final", isolation=ISOLATION, egress=EGRESS, landing=landed,
        spend=Spend(steps=3, tool_calls=3, usage=Usage(input=500, output=60), usd=Decimal("0.0369")),
    )  # fmt: skip
    return [
        decided(3637, "3.0-" + "d" * 12, "approve", by="ann"),
        trace.LandedStep.model_validate({**call(3638), "report": landed}),
        trace.ReleasedStep.model_validate({**call(3639), "ref": "refs/io-harness/x/final"}),
        trace.EndedStep(at=at(3640), status="completed", result=result),
    ]


def report(*, ended: bool = True, children: tuple[Report, ...] = ()) -> Report:
    return Report(
        steps=tuple(steps() + (end() if ended else [])),
        running=() if ended else (trace.Running("complete", "step 4: a model", at(38)),),
        read=at(4000),
        children=children,
    )


def child() -> Report:
    first = began("Write the docs.").model_copy(
        update={"workflow_id": "fix-add/1", "run_id": "child-1"}
    )
    return Report(steps=(first, prepared(), said(4, 1, Text(text="Hi."))), running=(), read=at(9))
