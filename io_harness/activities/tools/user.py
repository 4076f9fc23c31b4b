"""Tools of a user's own: typed Python functions, offered to the model by the plugin."""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from pydantic import BaseModel, JsonValue, create_model
from temporalio.exceptions import ApplicationError

from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import Act, Effect

from .base import AnyTool, Args, parse_arguments, schema_of
from .context import ToolContext, Want
from .errors import ToolError, ToolFailed

Result = str | BaseModel | JsonValue | Observation
Function = Callable[..., Result | Awaitable[Result]]
Target = str | Callable[..., str]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")  # what every provider takes


def tool(
    *, effect: Effect, act: Act, target: Target, name: str | None = None
) -> Callable[[Function], "FunctionTool"]:
    """Make a tool of a typed function, for `HarnessPlugin(tools=[...])`.

    The docstring's first paragraph is what the model reads; the parameters are its arguments. A
    parameter of type `ToolContext` gets the call's surroundings instead. What the function returns
    is shown to the model, capped like any output; an exception is shown as a failure, except
    `ApplicationError`, which leaves the activity, so that Temporal retries.

    Args:
        effect: `read` may run beside other calls; `write` may change the working copy and nothing
            else; `unrepeatable` is never repeated silently.
        act: what the policy is asked, before the function runs.
        target: about what: a path in the workspace (read, write), a command (exec) or a host:port
            (net), or a function of the tool's arguments, by name, that gives it.
        name: the tool's name; the function's if None.

    Raises:
        TypeError: a parameter has no type, or there is no docstring.
        ValueError: no provider takes the name.
    """
    return lambda function: FunctionTool(function, effect, act, target, name)


class FunctionTool(AnyTool):
    """A function as a tool."""

    def __init__(
        self, function: Function, effect: Effect, act: Act, target: Target, name: str | None
    ) -> None:
        self.name = name or str(getattr(function, "__name__", ""))
        if not _NAME.match(self.name):
            raise ValueError(
                f"{self.name!r} is no name for a tool; begin with a letter and use letters, digits, "
                "'_' and '-', at most 64"
            )
        described = inspect.getdoc(function)
        if not described:
            raise TypeError(
                f"the tool {self.name!r} has no docstring to tell the model what it does"
            )
        self.description = " ".join(described.split("\n\n")[0].split())
        self.effect = effect
        self._function = function
        self._act: Act = act
        self._target = target
        self._model, self._context_name = _model_of(self.name, function)

    def input_schema(self) -> dict[str, JsonValue]:
        return schema_of(self._model)

    async def call(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> Observation:
        parsed = parse_arguments(self.name, self._model, arguments)
        given: dict[str, Any] = {
            field: getattr(parsed, field) for field in self._model.model_fields
        }
        ctx.require(self._want(given, arguments, ctx))
        if self._context_name is not None:
            given[self._context_name] = ctx
        try:
            result = await self._run(given)
        except (ToolError, ApplicationError):
            raise
        except Exception as error:
            raise ToolFailed(f"{self.name}: {type(error).__name__}: {error}") from error
        return result if isinstance(result, Observation) else ctx.outputs.observe(_text(result))

    def _want(
        self, given: dict[str, Any], arguments: dict[str, JsonValue], ctx: ToolContext
    ) -> Want:
        target = self._target if isinstance(self._target, str) else self._target(**given)
        if self._act in ("read", "write"):
            with ctx.files.place(target) as place:
                target = place.path
        shown = json.dumps(arguments, indent=1, ensure_ascii=False, sort_keys=True)
        return Want(self._act, target, f"{self.name} {shown}", "text")

    async def _run(self, given: dict[str, Any]) -> Result:
        if inspect.iscoroutinefunction(self._function):
            result: Result = await self._function(**given)
            return result
        done = await asyncio.to_thread(self._function, **given)
        return await done if inspect.isawaitable(done) else done


def _model_of(name: str, function: Function) -> tuple[type[Args], str | None]:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"the tool {name!r}: parameter {parameter.name!r} needs a type of its own"
            )
        if hint is ToolContext:
            context = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hint, default)
    model: type[Args] = create_model(f"{name}_args", __base__=Args, **fields)
    return model, context


def _text(result: Result) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, BaseModel):
        return result.model_dump_json(indent=1)
    return json.dumps(result, indent=1, ensure_ascii=False)
