"""The two base models from which every type on the wire derives."""

from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class _Wire(BaseModel):
    """A model whose tags always count as set.

    A tag (`kind: Literal["landed"] = "landed"`) says which member of a union a JSON object is. A
    user's own payload converter may leave out what wasn't set, as the one of Temporal's plugin for
    the OpenAI Agents SDK does; without its tags a union could not be read back.
    """

    _tags: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._tags = frozenset(
            name
            for name, field in cls.model_fields.items()
            if get_origin(field.annotation) is Literal
            and not field.is_required()
            and len(get_args(field.annotation)) == 1
        )

    def model_post_init(self, context: object, /) -> None:
        self.__pydantic_fields_set__.update(self._tags)


class Strict(_Wire):
    """What people write (contracts, policies): an unknown field is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Record(_Wire):
    """What the harness writes to history: fields added by a newer release are skipped, so that an
    older worker can still read them."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


def unwritten(default: T) -> T:
    """A field that isn't written while it has its default: for what goes into history with each turn.
    The default is then part of what old histories say, and can't be changed."""
    field: Any = Field(default, exclude_if=lambda value: value == default)
    return cast(T, field)
