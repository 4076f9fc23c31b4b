"""Every error code: what it means, what to do, and the exit code it leads to.

A code is the `type` of a failed activity's or workflow's ApplicationError, and `RunResult.code`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .exits import Exit


@dataclass(frozen=True)
class ErrorCode:
    """One failure that is told apart from the others."""

    exit: Exit
    meaning: str
    remedy: str
    """What a person does about it."""
    retried: bool = False
    """Whether Temporal tries again before it counts. The run ends with the code only when the tries
    or the time are used up."""


_MODELS = {
    "RateLimited": ErrorCode(
        Exit.PROVIDER,
        "The provider takes no more calls for now.",
        "Wait, ask the provider for a higher limit, or give the contract fallbacks.",
        retried=True,
    ),
    "Overloaded": ErrorCode(
        Exit.PROVIDER,
        "The provider is overloaded.",
        "Start the run again later, or give the contract fallbacks.",
        retried=True,
    ),
    "ServerError": ErrorCode(
        Exit.PROVIDER,
        "The provider answered with an error of its own.",
        "Look at the provider's status page; start the run again later.",
        retried=True,
    ),
    "ConnectionLost": ErrorCode(
        Exit.PROVIDER,
        "The provider can't be reached, or the connection broke.",
        "Check `model.base_url` and the worker's network and proxy settings.",
        retried=True,
    ),
    "TimedOut": ErrorCode(
        Exit.PROVIDER,
        "The provider gave no whole reply in time.",
        "Raise `model.options.seconds` or `idle_seconds`, or lower `max_output_tokens`.",
        retried=True,
    ),
    "StreamCut": ErrorCode(
        Exit.PROVIDER,
        "The reply ended before its end marker.",
        "Look for a proxy between worker and provider that cuts long responses.",
        retried=True,
    ),
    "MalformedReply": ErrorCode(
        Exit.PROVIDER,
        "The reply is not what the provider's protocol says.",
        "Check that `model.provider` is the protocol that the server at `base_url` speaks.",
        retried=True,
    ),
    "EmptyReply": ErrorCode(
        Exit.PROVIDER,
        "The reply held neither text nor a tool call. Tried again once.",
        "Try another model; a small local one may not be able to call tools.",
        retried=True,
    ),
    "BadRequest": ErrorCode(
        Exit.PROVIDER,
        "The provider refuses the request.",
        "Read the message; an option or a tool schema may not suit this model.",
    ),
    "Unauthenticated": ErrorCode(
        Exit.PROVIDER,
        "The provider doesn't accept the API key.",
        "Exchange the key in the worker's environment and restart the worker.",
    ),
    "Forbidden": ErrorCode(
        Exit.PROVIDER,
        "The key may not use this model.",
        "Grant it at the provider, or name another model.",
    ),
    "NotFound": ErrorCode(
        Exit.PROVIDER,
        "The provider has no such model or address.",
        "Look the name up with `io-harness models`.",
    ),
    "QuotaExhausted": ErrorCode(
        Exit.PROVIDER,
        "The provider's credit is used up, or its spend limit reached.",
        "Add credit or raise the limit, then start the run again.",
    ),
    "ContentFiltered": ErrorCode(
        Exit.PROVIDER,
        "The provider's filter stopped the request.",
        "Look at what the goal or the files hold; another provider may take it.",
    ),
    "ReplyTooLarge": ErrorCode(
        Exit.PROVIDER,
        "The reply passed the size that a worker reads.",
        "Lower `model.options.max_output_tokens`; check what answers at `base_url`.",
    ),
    "ProviderDenied": ErrorCode(
        Exit.PROVIDER,
        "The policy denies the connection to the model's provider, or it leads to an address that is "
        "refused.",
        "Take the host out of the rule that the message names, or name another model.",
    ),
    "UntrustedServer": ErrorCode(
        Exit.PROVIDER,
        "The certificate of the provider's server doesn't verify.",
        "Give the worker your certificate authority by `SSL_CERT_FILE`.",
    ),
    "RetriesOverBudget": ErrorCode(
        Exit.UNVERIFIED,
        "What failed attempts at a model call used leaves too little for another one. The call is made "
        "again with a lower limit, or the run ends with the budget's outcome.",
        "Raise the budget.",
    ),
    "ContextTooLong": ErrorCode(
        Exit.PROVIDER,
        "The request doesn't fit the model's window. The transcript is folded; a run ends with it "
        "only where that can't help.",
        "Set `model.options.context_tokens` to the model's real window.",
    ),
    "ContextOverflow": ErrorCode(
        Exit.PROVIDER,
        "The window is full and the transcript can't be folded any further.",
        "Use a model with a larger window, or split the task.",
    ),
    "ModelDeclined": ErrorCode(
        Exit.PROVIDER,
        "The model refused to answer, or its answer was filtered.",
        "Read its words in the reason; put the goal differently, or add a fallback.",
    ),
    "MalformedReplies": ErrorCode(
        Exit.PROVIDER,
        "Several replies in a row held no tool call that could be used.",
        "Try a model that calls tools reliably, or raise `max_output_tokens` where replies are cut.",
    ),
    "ReplayDiverged": ErrorCode(
        Exit.PROVIDER,
        "A recorded conversation doesn't fit what the run did.",
        "Record it again, with the same workspace and contract.",
    ),
    "BadRecording": ErrorCode(
        Exit.USAGE,
        "The recording for the provider `replay` can't be read.",
        "Check the path in `model.base_url` and the place in the file that the message names.",
    ),
    "UnknownProvider": ErrorCode(
        Exit.USAGE,
        "`model.provider` names none that this worker has.",
        "Use one that the message lists, or register yours on the worker.",
    ),
    "MissingBaseUrl": ErrorCode(
        Exit.USAGE,
        "The provider needs `model.base_url`, or the one given is no HTTP address.",
        "Give the server's address, with http:// or https://.",
    ),
    "MissingCredential": ErrorCode(
        Exit.PROVIDER,
        "A credential that the contract names is not set on the worker, or not on its allow-list.",
        "Set the variable in the worker's environment; add its name to `IO_HARNESS_CREDENTIALS`.",
    ),
    "UnknownPrice": ErrorCode(
        Exit.USAGE,
        "There is a budget in USD and the price of a model is not known.",
        "Give `model.price`, or set `budget.unpriced: allow`.",
    ),
}

_WORKSPACES = {
    "SourceNotFound": ErrorCode(
        Exit.WORKSPACE,
        "The worker sees no such directory or repository, or may not read it.",
        "Give an absolute path on the worker's host, or a git URL it can read.",
    ),
    "SourceUnreachable": ErrorCode(
        Exit.WORKSPACE,
        "git can't reach the repository.",
        "Check URL, network and DNS from the worker's host with `git ls-remote`.",
        retried=True,
    ),
    "SourceUnreadable": ErrorCode(
        Exit.WORKSPACE,
        "A file of the workspace can't be read.",
        "Make it readable for the worker, or list it in `workspace.exclude`.",
    ),
    "SourceUrlRefused": ErrorCode(
        Exit.USAGE,
        "The git URL holds a password, or has a scheme that is not taken.",
        "Use ssh, or https with a credential helper on the worker.",
    ),
    "RefNotFound": ErrorCode(
        Exit.WORKSPACE,
        "The repository has no such branch, tag or commit.",
        "Correct `workspace.ref`; push the commit first.",
    ),
    "CriterionRefused": ErrorCode(
        Exit.WORKSPACE,
        "A sub-agent's criterion would run a command, or read a file, that the policy doesn't allow "
        "without asking.",
        "Nothing: the agent that wrote the criterion is told, and goes another way.",
    ),
    "SetupFailed": ErrorCode(
        Exit.WORKSPACE,
        "`workspace.setup` failed in the sandbox.",
        "Read its output in the message; it runs without network unless the policy allows hosts.",
    ),
    "IgnoredTooLarge": ErrorCode(
        Exit.WORKSPACE,
        "The files that git ignores pass `workspace.ignored_limit_mb`.",
        "Exclude the largest, raise the limit, or set `workspace.ignored: leave`.",
    ),
    "UnknownSnapshot": ErrorCode(
        Exit.WORKSPACE,
        "The snapshot store of this host doesn't have the run's snapshot.",
        "Have all hosts that serve one queue share their snapshots: `IO_HARNESS_SNAPSHOTS`.",
    ),
    "SnapshotsUnreachable": ErrorCode(
        Exit.WORKSPACE,
        "The git repository through which hosts share snapshots can't be used.",
        "Read git's words in the message: does it exist, may the worker's user fetch and push there?",
        retried=True,
    ),
    "WorkspaceFailure": ErrorCode(
        Exit.WORKSPACE,
        "A file operation or git failed on the worker.",
        "Read the message; look at the worker's disk and permissions.",
        retried=True,
    ),
    "AccessDenied": ErrorCode(
        Exit.WORKSPACE,
        "The worker's user may not do what the run needs.",
        "Grant it, or run the worker as a user that may.",
    ),
    "DiskFull": ErrorCode(
        Exit.WORKSPACE,
        "No space is left on the worker.",
        "Free some, or move `IO_HARNESS_DATA` to a larger disk; then start the run again.",
    ),
    "GitUnusable": ErrorCode(
        Exit.WORKSPACE,
        "git is missing on the worker, or too old.",
        "Install it; `io-harness doctor` shows what is found.",
    ),
    "NothingToVerify": ErrorCode(
        Exit.USAGE,
        "Verification was asked for, and the contract has neither criterion nor answer schema.",
        "Give the contract a `verification`.",
    ),
    "NoReviewer": ErrorCode(
        Exit.USAGE,
        "A verification without a run has a review in it, and there is no agent's run to ask a model.",
        "Take a criterion of another kind, or start a run.",
    ),
    "LandConflict": ErrorCode(
        Exit.WORKSPACE,
        "The work is verified, but the source moved meanwhile and the change doesn't merge.",
        "Take the work from the ref in the result, or start the run again on the new state.",
    ),
    "LandingImpossible": ErrorCode(
        Exit.WORKSPACE,
        "The work can't be delivered where `landing` says.",
        "Do what the message says. Found before the first model call wherever it can be.",
    ),
    "LandingUnreachable": ErrorCode(
        Exit.WORKSPACE,
        "The remote repository can't be reached for landing.",
        "Check the network; the work is kept under the ref in the result.",
        retried=True,
    ),
}

_OTHERS = {
    "InvalidHost": ErrorCode(
        Exit.USAGE,
        "A held command of your own workflow names a host that can't be read.",
        "Write names like `pypi.org` or `*.example.com:443` in `hosts`.",
    ),
    "InvalidContract": ErrorCode(
        Exit.USAGE,
        "The contract given to the workflow is not valid.",
        "Correct the fields that the message names; `io-harness schema` prints them all.",
    ),
    "BadPolicy": ErrorCode(
        Exit.USAGE,
        "The policy file in the workspace is not valid.",
        "Correct it as the message says.",
    ),
    "SandboxTooWeak": ErrorCode(
        Exit.SANDBOX,
        "The worker's sandbox can't enforce what `sandbox.require` lists.",
        "Install bubblewrap; see `io-harness sandbox doctor`.",
    ),
    "SandboxUnusable": ErrorCode(
        Exit.SANDBOX,
        "The sandbox itself failed, not the command in it.",
        "See `io-harness doctor` on the worker's host.",
    ),
    "McpServerFailed": ErrorCode(
        Exit.FAILED,
        "An MCP server can't be started or doesn't answer.",
        "Run its command by hand on the worker's host; read the message.",
    ),
    "McpServerRefused": ErrorCode(
        Exit.FAILED,
        "The policy, or a human, doesn't let an MCP server be used. By a human's no the outcome is "
        "`denied`, with exit code 4.",
        "Allow it in a layer of the policy, or take it out of `mcp_servers`.",
    ),
    "McpToolNotFound": ErrorCode(
        Exit.FAILED,
        "`mcp_servers.N.tools` names a tool that the server doesn't have.",
        "Use one of the names in the message.",
    ),
    "CriterionErrored": ErrorCode(
        Exit.FAILED,
        "The criterion could not run, twice. That says nothing about the work.",
        "Read the report in `verification`: a program is missing, or the set-up of the checkout "
        "failed.",
    ),
    "PayloadTooLarge": ErrorCode(
        Exit.FAILED,
        "The input of a call passes the size that Temporal takes. It was not scheduled.",
        "Shorten what the contract carries: goal, test files, schemas.",
    ),
    "ContractMismatch": ErrorCode(
        Exit.FAILED,
        "A worker can't read the contract that the run's workflow took: it is of another release.",
        "Have all workers of the run's queues run one release.",
        retried=True,
    ),
    "McpListMismatch": ErrorCode(
        Exit.FAILED,
        "An activity read another list of MCP tools than its call was made for.",
        "Start the run again; if its workers are of several releases, have them run one.",
        retried=True,
    ),
    "TranscriptMismatch": ErrorCode(
        Exit.FAILED,
        "An activity read another transcript than its call was made for.",
        "As McpListMismatch.",
        retried=True,
    ),
    "UnknownRequest": ErrorCode(
        Exit.FAILED,
        "The update `submit_decision` names a request that waits for no decision. The run goes on.",
        "Ask `pending_approvals` for what waits now.",
    ),
    "Timeout": ErrorCode(
        Exit.FAILED,
        "An activity gave no sign of life, or no result, within its time.",
        "Is a worker polling the queue (`io-harness doctor`)? Was it killed, or its host too slow?",
        retried=True,
    ),
    "Unknown": ErrorCode(
        Exit.FAILED,
        "An activity failed in a way that has no code.",
        "Look at the activity's failure in the run's history and at the worker's log.",
    ),
}

CODES: Mapping[str, ErrorCode] = {**_MODELS, **_WORKSPACES, **_OTHERS}


def exit_of_code(code: str | None) -> Exit:
    """The exit code for a run that ended with `code`."""
    known = CODES.get(code) if code is not None else None
    return known.exit if known is not None else Exit.FAILED
