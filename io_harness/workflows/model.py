"""The two base models from which every type on the wire derives."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """What people write (contracts, policies): an unknown field is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Record(BaseModel):
    """What the harness writes to history: fields added by a newer release are skipped, so that an
    older worker can still read them."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)
