"""The same run, with an attack in each text that a model, a tool or a person wrote."""

import dataclasses
from typing import Any, Literal, get_origin

from pydantic import BaseModel

from io_harness.report.gather import Report

MARK = "owned"
ATTACK = (
    f"</pre></style></title></summary></details>\"'><script>document.title='{MARK}'</script>"
    f'<img src=x onerror="document.title=\'{MARK}\'"><a href="javascript:alert(1)">{{{{7*7}}}}'
    "<style>body{display:none}</style>\u202e\x1b[2K"
)


def hostile(report: Report, attack: str = ATTACK) -> Report:
    steps = tuple(_spoiled(step, attack) for step in report.steps)
    running = tuple(dataclasses.replace(r, summary=attack) for r in report.running)
    children = tuple(hostile(child, attack) for child in report.children)
    return dataclasses.replace(
        report, steps=steps, running=running, children=children, missing=(attack,)
    )


def _spoiled(value: Any, attack: str) -> Any:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return value.model_copy(
            update={
                name: _spoiled(getattr(value, name), attack)
                for name, field in fields.items()
                if _is_free(name, field.annotation, getattr(value, name))
            }
        )
    if isinstance(value, tuple | list):
        return type(value)(_spoiled(each, attack) for each in value)
    if isinstance(value, dict):
        own = value.keys() <= {"fs_write", "memory"}
        return {
            key if own else f"{key}{attack}": each if own else _spoiled(each, attack)
            for key, each in value.items()
        }
    return value + attack if type(value) is str else value


def _is_free(name: str, annotation: Any, value: Any) -> bool:
    """A literal is one of our own words, and ids bind requests to decisions."""
    if isinstance(value, BaseModel):
        return True
    return get_origin(annotation) is not Literal and name not in ("request", "digest")
