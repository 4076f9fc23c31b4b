"""Values that a contract names by reference, resolved on this worker."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from io_harness.activities.settings import CredentialUnreadable, Settings, credential

from .errors import MissingCredential

if TYPE_CHECKING:
    from .catalogue import Server


def resolve(references: Mapping[str, str], server: "Server", settings: Settings) -> dict[str, str]:
    """Names with the values that their references stand for.

    Raises:
        MissingCredential: the message says what to do.
    """
    found: dict[str, str] = {}
    for name, reference in references.items():
        variable = reference.removeprefix("env:")
        if variable not in settings.credentials:
            raise MissingCredential(
                f"{variable} is not a credential that this worker gives to MCP servers, and "
                f"{server.id} asks for it; add it to IO_HARNESS_CREDENTIALS in the worker's "
                "environment"
            )
        try:
            value = credential(variable)
        except CredentialUnreadable as error:
            raise MissingCredential(str(error)) from error
        if not value:
            raise MissingCredential(
                f"{variable} is not set in the worker's environment, and the MCP server {server.id} "
                "asks for it"
            )
        found[name] = value
    return found
