"""Checks the final answer against a JSON Schema."""

import json

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from io_harness.workflows.result import CheckReport

_SHOWN = 300
_LISTED = 10


def check_answer(kind: str, schema: dict[str, JsonValue], answer: JsonValue) -> CheckReport:
    """Valid under the schema (draft 2020-12 unless `$schema` says otherwise), or why not. A `$ref`
    never leaves the schema: nothing is fetched."""
    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
        validator: Validator = validator_class(schema, registry=Registry())
        errors = sorted(validator.iter_errors(answer), key=lambda error: error.json_path)
    except SchemaError as error:
        return _errored(kind, f"the schema itself is not valid: {error.message}")
    except Unresolvable as error:
        return _errored(kind, f"the schema refers to {error.ref!r}, which is not in it")
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


def _errored(kind: str, summary: str) -> CheckReport:
    return CheckReport(kind=kind, verdict="errored", summary=summary)
