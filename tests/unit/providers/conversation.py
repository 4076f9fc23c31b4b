"""One conversation with everything in it that a request can hold."""

from io_harness.activities.providers.base import ModelRequest
from io_harness.workflows.contract import ModelOptions
from io_harness.workflows.messages import (
    AssistantMessage,
    Image,
    MalformedToolCall,
    ModelRef,
    Observation,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.unit.providers.conftest import FINISH, READ_FILE, ask

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000000000001000154a24f1d00"
    "00000049454e44ae426082"
)
PICTURE = Image(media_type="image/png", blob="b1", bytes=len(PIXEL))

REASONING = {
    "anthropic": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    "openai-responses": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
    },
    "openrouter": {"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]},
    "openai-compatible": {"reasoning_content": "Hm."},
}
"""What each API's own reasoning looks like in a transcript."""


def everything(api: str, **options: object) -> ModelRequest:
    """Reasoning of this API and of another, parallel calls, images, a malformed call, a lost result,
    an empty text and an empty result."""
    own = [Reasoning(provider=api, data=REASONING[api])] if api in REASONING else []
    foreign = Reasoning(provider="some-other", data={"type": "secret of another"})
    served = ModelRef(provider=api, name="fake-model")
    return ask(
        UserMessage(origin="goal", text="Fix the bug."),
        AssistantMessage(
            parts=(
                *own,
                foreign,
                Text(text="I look."),
                Text(text=""),
                ToolCall(id="c1", name="read_file", arguments={"path": "a.py"}),
                ToolCall(id="c2", name="read_file", arguments={"path": "b.png"}),
                MalformedToolCall(id="c3", name="odd name!", raw='{"path": ', error="cut"),
            ),
            served_by=served,
        ),
        ToolMessage(call_id="c1", name="read_file", observation=Observation(text="")),
        ToolMessage(
            call_id="c2",
            name="read_file",
            observation=Observation(
                text="a picture",
                images=(PICTURE, PICTURE.model_copy(update={"blob": "not kept"})),
            ),
        ),
        ToolMessage(
            call_id="c3", name="odd name!", observation=Observation(text="cut", is_error=True)
        ),
        UserMessage(origin="verification", text="The tests fail."),
        AssistantMessage(
            parts=(ToolCall(id="lost", name="read_file", arguments={}),), served_by=served
        ),
        UserMessage(origin="human", text="Go on."),
        images={"b1": PIXEL},
        tools=(READ_FILE, FINISH),
        options=ModelOptions.model_validate({"idle_seconds": 5, **options}),
    )
