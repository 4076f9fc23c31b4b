"""Names by which a host keeps what belongs to one run."""

import hashlib
import json
import re

from pydantic import JsonValue


def run_key(workflow_id: str, first_run_id: str) -> str:
    """Safe as a file name and as a part of a git ref; the same over continue-as-new and reset.

    Args:
        first_run_id: Run id of the first execution of the run's chain.
    """
    return f"{key_stem(workflow_id)}-{first_run_id[:8]}"


def contract_digest(given: JsonValue) -> str:
    """Names a contract by what was given, not by how this release would write it: a field that a
    later release adds changes no run that is under way."""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def key_stem(workflow_id: str) -> str:
    """The part of the key that the workflow's id gives. Several ids may share it."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", workflow_id).strip("-")[:60] or "run"
