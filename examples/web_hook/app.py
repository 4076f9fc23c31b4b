"""Decide from a web hook: a chat's button or a form posts a signed decision, and the run goes on.

The sender signs the body with a secret that both know, as GitHub and Slack do it; who may press the
button is the sender's to check. What can't take effect is answered with 409 and the reason.
"""

import hashlib
import hmac
import os

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig

from io_harness import runs
from io_harness.workflows.approvals import Decision

SIGNATURE = "x-signature-256"


class Hook(BaseModel):
    """What is posted."""

    run: str
    decision: Decision


def sign(secret: bytes, body: bytes) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def make_app(client: Client, secret: bytes) -> Starlette:
    async def decide(request: Request) -> Response:
        body = await request.body()
        if not hmac.compare_digest(sign(secret, body), request.headers.get(SIGNATURE, "")):
            return PlainTextResponse("wrong signature\n", status_code=401)
        try:
            hook = Hook.model_validate_json(body)
        except ValidationError as error:
            return PlainTextResponse(f"{error}\n", status_code=422)
        try:
            await runs.decide(client, hook.run, hook.decision)
        except (runs.DecisionRejected, runs.NoSuchRun) as error:
            return PlainTextResponse(f"{error}\n", status_code=409)
        return Response(status_code=204)

    return Starlette(routes=[Route("/decisions", decide, methods=["POST"])])


async def main() -> None:
    import uvicorn

    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), data_converter=pydantic_data_converter
    )
    app = make_app(client, os.environ["WEB_HOOK_SECRET"].encode())
    await uvicorn.Server(uvicorn.Config(app, port=8000)).serve()


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
