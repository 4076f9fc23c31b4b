"""Whoever watches sees what the model says while it says it."""

from io_harness.activities.providers.base import CallProgress
from io_harness.activities.providers.wire import Wire
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Say

from .conftest import ask, provider_at

WORDS = "Reading the tests first, then the code."


async def test_each_api_tells_the_words_as_they_come(api: str, wire: Wire, key: str) -> None:
    progress = CallProgress()
    async with FakeProvider(Say(WORDS)) as fake:
        await provider_at(api, fake, wire).complete(ask(), progress)
    assert progress.tail == WORDS


def test_only_the_end_is_kept() -> None:
    progress = CallProgress()
    for _ in range(1_000):
        progress.said("word ")
    assert progress.tail == "word " * 60
