"""What the model sees of a server's answer: every kind of content, capped, the whole of it kept."""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Literal, assert_never, cast, get_args

import mcp_types as types
from pydantic import JsonValue

from io_harness.activities.outputs import RunOutputs
from io_harness.activities.schemas import BadSchema, Mismatch, check_value
from io_harness.activities.tools.context import BlobStore
from io_harness.workflows.messages import Image, Observation

from .text import one_line

IMAGE_BYTES = 5 * 1024 * 1024
MAX_IMAGES = 8
_NAME = 500

_MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
_SIGNATURES: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


class Rendering:
    """Collects the parts of one answer."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.lines: list[str] = []
        self.images: list[Image] = []

    async def content(self, blocks: Iterable[types.ContentBlock]) -> None:
        for block in blocks:
            await self._block(block)

    async def _block(self, block: types.ContentBlock) -> None:
        match block:
            case types.TextContent():
                self.lines.append(block.text)
            case types.ImageContent():
                await self._binary("image", block.mime_type, block.data)
            case types.AudioContent():
                await self._binary("audio", block.mime_type, block.data)
            case types.EmbeddedResource():
                await self.resource(block.resource)
            case types.ResourceLink():
                about = f": {one_line(block.description, _NAME)}" if block.description else ""
                name = one_line(block.name, _NAME)
                self.lines.append(f"[resource {name!r} at {one_line(block.uri, _NAME)}{about}]")
            case _:
                assert_never(block)

    async def resource(
        self, contents: types.TextResourceContents | types.BlobResourceContents
    ) -> None:
        """The contents of a resource, under its URI."""
        uri = one_line(contents.uri, _NAME)
        match contents:
            case types.TextResourceContents():
                self.lines.append(f"[resource {uri}]\n{contents.text}")
            case types.BlobResourceContents():
                await self._binary(f"resource {uri}", contents.mime_type or "", contents.blob)
            case _:
                assert_never(contents)

    def structured(self, value: JsonValue) -> None:
        """The structured result, unless its text is already there."""
        for line in self.lines:
            try:
                if json.loads(line) == value:
                    return
            except (ValueError, RecursionError):
                continue
        self.lines.append(json.dumps(value, ensure_ascii=False, indent=1))

    async def _binary(self, what: str, media_type: str, data: str) -> None:
        kind = one_line(media_type, 100) or "unknown type"
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            self.lines.append(f"[{what}, {kind}: not valid base64]")
            return
        why = self._unshown(media_type, raw)
        if why:
            self.lines.append(f"[{what}, {kind}, {len(raw):,} bytes: {why}]")
            return
        blob = await self._blobs.put_blob(raw)
        self.images.append(
            Image(media_type=cast(_MediaType, media_type), blob=blob, bytes=len(raw))
        )
        self.lines.append(f"[{what}, {kind}, {len(raw):,} bytes]")

    def _unshown(self, media_type: str, raw: bytes) -> str:
        if media_type not in get_args(_MediaType):
            return "can't be shown"
        if not raw.startswith(_SIGNATURES[media_type]):
            return "is not what its type says"
        if len(raw) > IMAGE_BYTES:
            return "too large to be shown"
        if len(self.images) == MAX_IMAGES:
            return f"not shown; {MAX_IMAGES} images are"
        return ""

    def observation(
        self, outputs: RunOutputs, *, is_error: bool = False, first: str = ""
    ) -> Observation:
        """Capped as every tool's output is; what is left out can be read by `read_output`."""
        text = "\n".join((*([first] if first else ()), *self.lines)) or "(an empty answer)"
        seen = outputs.observe(text, is_error=is_error)
        return seen.model_copy(update={"images": tuple(self.images)})


async def render_result(
    result: types.CallToolResult,
    output_schema: dict[str, JsonValue] | None,
    blobs: BlobStore,
    outputs: RunOutputs,
) -> Observation:
    """A tool's result, checked against the schema that the tool itself declares."""
    rendering = Rendering(blobs)
    await rendering.content(result.content)
    if result.structured_content is not None:
        rendering.structured(result.structured_content)
    fault = "" if result.is_error else _fault(result, output_schema)
    return rendering.observation(outputs, is_error=result.is_error or bool(fault), first=fault)


def _fault(result: types.CallToolResult, output_schema: dict[str, JsonValue] | None) -> str:
    if output_schema is None:
        return ""
    if "structured_content" not in result.model_fields_set:
        return "[the tool declares a structured result and gave none]"
    try:
        check_value(output_schema, result.structured_content)
    except Mismatch as error:
        return f"[the result is not what the tool itself declares: {error}]"
    except BadSchema as error:
        return f"[the tool's own schema of its result is of no use: {error}]"
    return ""
