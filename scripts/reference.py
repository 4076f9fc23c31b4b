"""Writes docs/reference.md from the code: `uv run python -m scripts.reference`."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from temporalio.workflow import _Definition  # the SDK has no public way to list handlers

from io_harness import TASK_QUEUE
from io_harness.activities.telemetry.metrics import METRICS
from io_harness.cli.error_codes import CODES
from io_harness.cli.exits import Exit
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.attributes import MEANINGS, NAMES
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"

ENVIRONMENT = {
    "TEMPORAL_ADDRESS": "Temporal's address, `host:port`. Without it and without a profile the "
    "command line uses the embedded server.",
    "TEMPORAL_NAMESPACE": "Namespace; by default `default`.",
    "TEMPORAL_PROFILE": "Profile of the configuration file.",
    "TEMPORAL_CONFIG_FILE": "Temporal's configuration file; by default `temporal.toml` in its usual "
    "place.",
    "TEMPORAL_API_KEY": "API key for Temporal Cloud.",
    "TEMPORAL_TLS*": "TLS of the connection; all of Temporal's own environment configuration holds.",
    "ANTHROPIC_API_KEY": "Key of the provider `anthropic`. Read by the worker only.",
    "OPENAI_API_KEY": "Key of the providers `openai` and `openai-responses`. Read by the worker only.",
    "OPENROUTER_API_KEY": "Key of the provider `openrouter`. Read by the worker only.",
    "*_FILE": "With the name of any credential before it: a file that holds its value, where the "
    "variable itself is not set.",
    "IO_HARNESS_SNAPSHOTS": "A git repository through which the workers of several hosts share "
    "snapshots.",
    "IO_HARNESS_CREDENTIALS": "Further variables that contracts may name as `env:NAME`, "
    "comma-separated.",
    "IO_HARNESS_DATA": "Where a host keeps snapshots, working copies, outputs and the embedded "
    "server's database; by default `$XDG_DATA_HOME/io-harness`.",
    "IO_HARNESS_UI": "Address of the Temporal UI of a configured server, for links.",
    "IO_HARNESS_CODEC": "`zstd` compresses payloads; the same for every worker and client.",
    "IO_HARNESS_ENCRYPTION_KEYS": "Encrypts payloads with the first of these keys and decrypts with "
    "all: `ID=env:NAME` or `ID=file:PATH`, comma-separated; the same for every worker and client.",
    "IO_HARNESS_METRICS": "Where `up` and `worker` serve metrics for Prometheus: `[ADDRESS:]PORT`.",
    "IO_HARNESS_LOG_FORMAT": "`json` makes `up` and `worker` log objects; by default `console`.",
    "IO_HARNESS_LOG_LEVEL": "What `up` and `worker` log: `debug`, `info` (default), `warning` or "
    "`error`.",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "Where traces and metrics are sent, by OTLP over HTTP "
    "(`http/protobuf`). `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and `..._METRICS_ENDPOINT` are for one "
    "of them; `OTEL_EXPORTER_OTLP_HEADERS`, `..._TIMEOUT`, `..._CERTIFICATE` and the like hold too.",
    "OTEL_TRACES_EXPORTER": "`otlp`, `console` (on standard error) or `none`; by default `otlp` if an "
    "endpoint is set.",
    "OTEL_METRICS_EXPORTER": "As `OTEL_TRACES_EXPORTER`, for metrics.",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "`http/protobuf` is the only one that can be sent.",
    "OTEL_SDK_DISABLED": "`true` turns traces and metrics off, but for `--metrics`.",
    "OTEL_SERVICE_NAME": "Name of the workers in traces and metrics; by default `io-harness`. "
    "`OTEL_RESOURCE_ATTRIBUTES` holds too.",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "`true` puts prompts, replies, arguments and "
    "outputs into spans.",
    "SSL_CERT_FILE": "Certificate authorities that the worker trusts, instead of the usual ones.",
    "GIT_AUTHOR_NAME": "Author of the agent's commits; by default `io-harness`. `GIT_AUTHOR_EMAIL` is "
    "the address.",
    "GIT_SSH_COMMAND": "How the worker's git reaches workspaces by ssh; by default "
    "`ssh -o BatchMode=yes`. `SSH_AUTH_SOCK`, `GIT_ASKPASS`, `SSH_ASKPASS`, `GIT_SSL_CAINFO` and the "
    "variables of proxies (`HTTPS_PROXY` and the like) reach it too.",
    "XDG_DATA_HOME": "Holds the folder `io-harness` where `IO_HARNESS_DATA` is not set; by default "
    "`~/.local/share`.",
    "XDG_CACHE_HOME": "Holds what the probe of the sandbox found on this host; by default `~/.cache`.",
    "EDITOR": "What `approve --edit` opens; `VISUAL` goes before it.",
    "NO_COLOR": "No colours.",
}
"""Every variable that a worker or the command line reads."""


def render() -> str:
    """The whole page."""
    parts = [
        "# Reference",
        "Made from the code by `uv run python -m scripts.reference`; don't edit it by hand.",
        *_errors(),
        *_exits(),
        *_outcomes(),
        *_handlers(),
        *_attributes(),
        *_metrics(),
        *_environment(),
        *_models(),
    ]
    return "\n\n".join(parts) + "\n"


def _errors() -> Iterator[str]:
    yield "## Error codes"
    yield (
        "A code is the `type` of a failed activity or workflow and the field `code` of a result. "
        "*Retried*: Temporal tries again with growing waits, and the run ends with the code only "
        "when tries or time are used up. *Exit* is the exit code of `io-harness run`. A code that "
        "is not listed is the name of a Python exception: a bug, please report it with the trace."
    )
    rows = (
        (f"`{name}`", code.meaning, "yes" if code.retried else "no", code.remedy, str(code.exit))
        for name, code in sorted(CODES.items())
    )
    yield _table(("code", "means", "retried", "what to do", "exit"), rows)


def _exits() -> Iterator[str]:
    yield "## Exit codes"
    docs = _member_docs(Exit)
    rows = ((str(int(code)), _flat(docs[code.name])) for code in Exit)
    yield _table(("code", "means"), rows)


def _outcomes() -> Iterator[str]:
    yield "## Outcomes"
    yield "How a run ended: `outcome` of the result. Waiting for a human is a state, no outcome."
    docs = _member_docs(Outcome)
    rows = ((f"`{each.value}`", _flat(docs[each.name])) for each in Outcome)
    yield _table(("outcome", "means"), rows)


def _handlers() -> Iterator[str]:
    found = _Definition.must_from_class(AgentRun)
    yield "## Workflow"
    yield (
        f"Workflow type `{found.name}`, by default on the task queue `{TASK_QUEUE}`. Input: a "
        "[contract](#taskcontract) as JSON. Result: a [RunResult](#runresult)."
    )
    rows = [
        *_of_kind("signal", found.signals),
        *_of_kind("update", found.updates),
        *_of_kind("query", found.queries),
    ]
    yield _table(("kind", "name", "takes", "gives", ""), rows)


def _of_kind(kind: str, handlers: Mapping[Any, Any]) -> Iterator[tuple[str, ...]]:
    for name, handler in sorted(handlers.items(), key=lambda item: str(item[0])):
        if name is None or name == "tree":  # between the agents of a tree, not for people
            continue
        function: Callable[..., object] = handler.fn
        hints = get_type_hints(function)
        gives = hints.pop("return", type(None))
        takes = ", ".join(_of_type(hint) for hint in hints.values())
        given = "" if gives is type(None) else _of_type(gives)
        yield (kind, f"`{name}`", takes, given, _flat(inspect.getdoc(function) or ""))


def _of_type(hint: Any) -> str:
    return _type(TypeAdapter(hint).json_schema(mode="serialization"))


def _attributes() -> Iterator[str]:
    yield "## Search attributes"
    rows = ((f"`{name}`", kind, MEANINGS[name]) for name, kind in NAMES.items())
    yield _table(("attribute", "type", "holds"), rows)
    yield (
        "`HarnessState = 'waiting'` lists the runs that wait for a human. `io-harness doctor` prints "
        "the command that registers them; runs work without."
    )


def _metrics() -> Iterator[str]:
    yield "## Metrics"
    yield (
        "Names are OpenTelemetry's; Prometheus sees `_` for `.`, with `_seconds` after those in `s` "
        "and `_total` after counters. Beside these there are the "
        "[metrics of Temporal's SDK](https://docs.temporal.io/references/sdk-metrics)."
    )
    rows = (
        (f"`{m.name}`", "histogram" if m.buckets else "counter", f"`{m.unit}`", m.meaning,
         ", ".join(f"`{name}`" for name in m.attributes))
        for m in METRICS
    )  # fmt: skip
    yield _table(("metric", "kind", "unit", "measures", "by"), rows)


def _environment() -> Iterator[str]:
    yield "## Environment"
    rows = ((f"`{name}`", meaning) for name, meaning in ENVIRONMENT.items())
    yield _table(("variable", "means"), rows)


def _models() -> Iterator[str]:
    roots = {
        "Contract": TaskContract.model_json_schema(),
        "Result": RunResult.model_json_schema(mode="serialization"),
        "Decisions": Decision.model_json_schema(),
        "Queries": _of_queries(),
    }
    seen: set[str] = set()
    for title, schema in roots.items():
        yield f"## {title}"
        if title == "Contract":
            yield "`policy` is `careful`, `unattended`, `read-only`, or a [Policy](#policy)."
        models = {schema["title"]: schema} if "title" in schema else {}
        for name, model in {**models, **schema.get("$defs", {})}.items():
            if name not in seen and "properties" in model:
                seen.add(name)
                yield from _model(name, model)


def _of_queries() -> dict[str, Any]:
    adapters = [
        (handler.fn.__name__, "serialization", TypeAdapter(get_type_hints(handler.fn)["return"]))
        for handler in _Definition.must_from_class(AgentRun).queries.values()
        if handler.name is not None
    ]
    return TypeAdapter.json_schemas(adapters)[1]  # type: ignore[arg-type]


def _model(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    if text := _flat(schema.get("description", "")):
        yield text
    required = set(schema.get("required", ()))
    rows = (
        (
            f"`{field}`",
            _type(inner),
            "required" if field in required and "const" not in inner else _default(inner),
            _flat(inner.get("description", "")),
        )
        for field, inner in schema.get("properties", {}).items()
    )
    yield _table(("field", "type", "default", "means"), rows)


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("const", schema.get("default"))
    if value is None:
        return "none"
    if isinstance(value, dict) and value:
        return "its defaults"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name == "JsonValue":
            return "any JSON"
        return f"[{name}](#{'outcomes' if name == 'Outcome' else name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            kinds = [_type(each) for each in schema[union] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "title" in schema and "properties" in schema:
        return f"[{schema['title']}](#{schema['title'].lower()})"
    return _plain(schema)


def _plain(schema: Mapping[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object":
            return f"map of text to {_type(_values(schema))}"
        case "string":
            return "text" if "pattern" not in schema else "decimal"
        case "integer" | "number" | "boolean" as kind:
            return f"{kind}{_bounds(schema)}"
        case _:
            return "any JSON"


def _values(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = [schema.get("additionalProperties", {}), *schema.get("patternProperties", {}).values()]
    return next((each for each in reversed(found) if isinstance(each, dict)), {})


def _bounds(schema: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
    found = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return f" {', '.join(found)}" if found else ""


def _member_docs(enum: type[Enum]) -> dict[str, str]:
    """The string that stands below each member."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(enum))).body
    assert isinstance(tree, ast.ClassDef)
    docs: dict[str, str] = {}
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        match statement, after:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = text
    return docs


def _flat(text: str) -> str:
    return " ".join(text.split())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
