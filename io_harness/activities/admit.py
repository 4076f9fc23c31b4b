"""The activity that finds out what can be wrong with a run before it costs anything."""

from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from io_harness.workflows.attributes import NAMES
from io_harness.workflows.payloads import AdmitInput, Admitted

from .heartbeat import heartbeating
from .prompt import briefing, prompt_tokens
from .providers.check import check_models
from .run_reader import RunReader
from .settings import Settings
from .tools.registry import ToolRegistry
from .verification.answer import check_schemas

_WIRE = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "Double": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
}


class AdmissionActivities:
    """Runs where model calls run, for only that host has their credentials."""

    def __init__(self, settings: Settings, reader: RunReader, registry: ToolRegistry) -> None:
        self._settings = settings
        self._reader = reader
        self._registry = registry

    @activity.defn(name="admit")
    async def admit(self, given: AdmitInput) -> Admitted:
        """Check models and their credentials, and tell what the loop must know of this worker.

        Raises:
            ApplicationError: as `check_models` and `check_schemas`, or `UnknownTool`.
        """
        async with heartbeating():
            contract = await self._reader.contract(given.run)
            self._registry.check(contract)
            check_schemas(contract, by_agent=given.run.sub_agent)
            tools = self._registry.specs(contract, given.run.sub_agent)
            return Admitted(
                prices=check_models(contract, self._settings),
                cli_options=cli_options(activity.client()),
                search_attributes=await registered_attributes(activity.client()),
                effects=self._registry.effects(contract),
                prompt_tokens=prompt_tokens(contract, tools),
                briefing=briefing(contract, tools).pack(),
            )


def cli_options(client: Client) -> str:
    """Address and namespace as options of the `temporal` command, as far as they aren't its defaults.
    Without them a pasted command would go to whatever server is at the usual address."""
    options = ""
    target = client.service_client.config.target_host
    if target not in ("localhost:7233", "127.0.0.1:7233"):
        options += f" --address {target}"
    if client.namespace != "default":
        options += f" --namespace {client.namespace}"
    return options


async def registered_attributes(client: Client) -> tuple[str, ...]:
    """Which of our search attributes the namespace has, with the right type. A server that doesn't
    tell counts as having none: setting one that isn't there would wedge the workflow."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError:
        return ()
    return tuple(
        name for name, kind in NAMES.items() if listed.custom_attributes.get(name) == _WIRE[kind]
    )
