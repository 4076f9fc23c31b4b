"""Checks the final answer against a JSON Schema."""

import json
from collections.abc import Iterator

from jsonschema.exceptions import best_match
from pydantic import JsonValue

from io_harness.activities.failure import failure
from io_harness.activities.schemas import BadSchema, check_schema, errors_of, without_patterns
from io_harness.workflows.contract import AllOf, AnyOf, JsonSchemaCheck, TaskContract, Verification
from io_harness.workflows.result import CheckReport

Schema = dict[str, JsonValue]

_SHOWN = 300
_LISTED = 10


def check_schemas(contract: TaskContract, *, by_agent: bool) -> None:
    """Find out before anything is spent whether answers can be checked.

    Args:
        by_agent: An agent wrote the schemas. It may have no regular expression run: one can take for
            ever, and holds up the worker as long.

    Raises:
        ApplicationError: InvalidContract.
    """
    named = [("verification", schema) for schema in _schemas(contract.verification)]
    if contract.output_schema is not None:
        named.append(("output_schema", contract.output_schema))
    for field, schema in named:
        try:
            check_schema(schema)
        except BadSchema as error:
            raise failure("InvalidContract", f"{field}: {error}") from None
        if by_agent and without_patterns(schema) != schema:
            raise failure(
                "InvalidContract",
                f"{field}: a sub-agent's schema may have no pattern; leave out `pattern` and "
                "`patternProperties`, or use `enum`",
            )


def check_answer(kind: str, schema: Schema, answer: JsonValue) -> CheckReport:
    """Valid under the schema (draft 2020-12 unless `$schema` says otherwise), or why not. A `$ref`
    never leaves the schema: nothing is fetched."""
    try:
        check_schema(schema)
        errors = sorted(errors_of(schema, answer), key=lambda error: error.json_path)
    except BadSchema as error:
        return CheckReport(kind=kind, verdict="errored", summary=f"the schema: {error}")
    if not errors:
        return CheckReport(kind=kind, verdict="passed", summary="the answer is valid")
    best = best_match(errors)
    assert best is not None
    lines = [f"{error.json_path}: {error.message[:_SHOWN]}" for error in errors[:_LISTED]]
    if len(errors) > _LISTED:
        lines.append(f"and {len(errors) - _LISTED} more")
    shown = json.dumps(answer, ensure_ascii=False)[:_SHOWN]
    return CheckReport(
        kind=kind,
        verdict="failed",
        summary=f"the answer is not valid: {best.json_path}: {best.message[:_SHOWN]}",
        detail="\n".join([*lines, f"the answer was: {shown}"]),
    )


def _schemas(check: Verification) -> Iterator[Schema]:
    match check:
        case JsonSchemaCheck():
            yield check.json_schema
        case AllOf() | AnyOf():
            for part in check.checks:
                yield from _schemas(part)
        case _:
            pass
