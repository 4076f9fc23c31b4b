"""The codec server: its protocol, its guard, and the real Temporal UI that shows what it decodes."""

import asyncio
import base64
import json
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from google.protobuf.json_format import MessageToDict
from playwright.async_api import expect
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import DataConverter, ExternalStorage

from io_harness.activities.settings import Settings
from io_harness.cli.web import listening
from io_harness.codec import ZstdCodec
from io_harness.codec_server import codec_server
from io_harness.encryption import CannotDecrypt, EncryptionCodec, Key
from io_harness.plugin import HarnessPlugin
from io_harness.server import embedded_server
from io_harness.workflows.attributes import NAMES

from .browser import chromium
from .conftest import Repo
from .test_payload_options import Files, run

KEY = Key("2026", secrets.token_bytes(32))
UI = "http://ui.example"
TEXT = Payload(metadata={"encoding": b"json/plain"}, data=b'"shown"')
TEMPORAL = Path(sys.executable).parent / "temporal"


def codec() -> EncryptionCodec:
    return EncryptionCodec([KEY], inner=ZstdCodec())


@asynccontextmanager
async def served(converter: DataConverter, origin: str = UI) -> AsyncIterator[str]:
    app = codec_server(converter, origins=[origin])
    listener, address = listening(0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    yield address
    server.should_exit = True
    await serving


async def post(address: str, path: str, *payloads: Payload, **headers: str) -> httpx.Response:
    body = {"payloads": [MessageToDict(payload) for payload in payloads]}
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"{address}/{path}", json=body, headers=headers)


async def test_what_it_encodes_it_decodes_and_text_stays_text() -> None:
    async with served(DataConverter(payload_codec=codec())) as address:
        encoded = await post(address, "encode", TEXT)
        (sealed,) = encoded.json()["payloads"]
        assert base64.b64decode(sealed["metadata"]["encoding"]) == b"binary/encrypted"
        async with httpx.AsyncClient(trust_env=False) as client:
            decoded = await client.post(f"{address}/decode", json=encoded.json())
        assert decoded.json()["payloads"] == [MessageToDict(TEXT)]
        assert (await post(address, "decode", TEXT)).json()["payloads"] == [MessageToDict(TEXT)]


async def test_what_can_t_be_decoded_says_why() -> None:
    other = EncryptionCodec([Key("1999", secrets.token_bytes(32))])
    async with served(DataConverter(payload_codec=codec())) as address:
        unknown = await post(address, "decode", *(await other.encode([TEXT])))
        assert (unknown.status_code, "key '1999'" in unknown.text) == (422, True)
        async with httpx.AsyncClient(trust_env=False) as client:
            for content in (b"", b'{"payloads": 3}', b"\xff"):
                answer = await client.post(f"{address}/decode", content=content)
                assert answer.status_code == 400, content


async def test_only_the_ui_s_pages_may_read_and_no_other_name_reaches_it() -> None:
    async with (
        served(DataConverter(payload_codec=codec())) as address,
        httpx.AsyncClient(base_url=address, trust_env=False) as client,
    ):
        asks = {"access-control-request-method": "POST",
                "access-control-request-headers": "content-type,x-namespace"}  # fmt: skip
        allowed = await client.options("/decode", headers={"origin": UI, **asks})
        assert allowed.headers["access-control-allow-origin"] == UI
        assert allowed.status_code == 200
        for evil in ("http://evil.example", "null"):
            refused = await client.options("/decode", headers={"origin": evil, **asks})
            assert "access-control-allow-origin" not in refused.headers
            assert refused.status_code == 400
        assert (await post(address, "decode", TEXT, host="evil.example")).status_code == 400


async def test_what_is_stored_outside_of_history_is_fetched(tmp_path: Path) -> None:
    storage = ExternalStorage([Files(tmp_path)], payload_size_threshold=100)
    converter = DataConverter(payload_codec=codec(), external_storage=storage)
    long = Payload(metadata={"encoding": b"json/plain"}, data=b'"' + b"long " * 200 + b'"')
    (stored,) = await converter.encode(["long " * 200])
    assert list(tmp_path.iterdir())
    async with served(converter) as address:
        fetched = await post(address, "download", stored)
        assert fetched.json()["payloads"] == [MessageToDict(long)], fetched.text
    without = DataConverter(payload_codec=codec())
    async with served(without) as address:
        assert (await post(address, "decode", stored)).json()["payloads"] == [MessageToDict(stored)]


@pytest.mark.timeout(240)
async def test_the_temporal_ui_and_command_show_an_encrypted_run(
    tmp_path: Path, repo: Repo
) -> None:
    """A server of its own, since its UI is configured in the browser by address."""
    async with embedded_server(tmp_path / "server", NAMES) as held:
        plugin = HarnessPlugin(Settings(data_dir=tmp_path / "data"), codec=codec())
        client = await Client.connect(held.server.address, plugins=[plugin])
        found = "shown-in-the-ui"
        history = await run(client, repo, tmp_path, found)
        assert b"Make add right." not in history
        assert b"edit_file" not in history
        page_of_run = f"{held.server.ui}/namespaces/default/workflows/{found}"
        async with served(DataConverter(payload_codec=codec()), held.server.ui) as address:
            shown = await asyncio.to_thread(
                subprocess.run,
                [TEMPORAL, "workflow", "show", "--workflow-id", found, "--detailed",
                 "--address", held.server.address, "--codec-endpoint", address],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert "Make add right." in shown.stdout
            async with chromium() as browser:
                page = await browser.new_page(viewport={"width": 1400, "height": 1000})
                await page.goto(page_of_run)
                endpoint = json.dumps(address)
                await page.evaluate(f"localStorage.setItem('endpoint', {json.dumps(endpoint)})")
                await page.evaluate(
                    "localStorage.setItem('overrideRemoteCodecConfiguration', 'true')"
                )
                await page.reload()
                await expect(page.get_by_text("Make add right.").first).to_be_visible(
                    timeout=30_000
                )
                await page.screenshot(path=tmp_path / "ui.png")


async def test_a_client_with_another_key_gets_one_clear_error(
    address: str, repo: Repo, tmp_path: Path
) -> None:
    plugin = HarnessPlugin(Settings(data_dir=tmp_path / "data"), codec=codec())
    client = await Client.connect(address, plugins=[plugin])
    await run(client, repo, tmp_path, "sealed-with-2026")
    other = EncryptionCodec([Key("1999", secrets.token_bytes(32))])
    reader = await Client.connect(address, data_converter=DataConverter(payload_codec=other))
    with pytest.raises(CannotDecrypt, match="key '2026'"):
        await reader.get_workflow_handle("sealed-with-2026").result()
    assert await client.get_workflow_handle("sealed-with-2026").result()  # the control
