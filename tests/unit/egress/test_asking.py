import asyncio

import pytest

from io_harness.sandbox.egress.asking import SharedAsk
from io_harness.sandbox.egress.decision import Question
from io_harness.sandbox.egress.hosts import parse_authority
from io_harness.sandbox.egress.rules import Effect, Verdict


def question(text: str) -> Question:
    return Question(parse_authority(text), Verdict(Effect.ASK, "ask *", "run"))


class Person:
    """Answers when told to; remembers what was asked and what was taken back."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.taken_back: list[str] = []
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def __call__(self, asked: Question) -> bool:
        self.asked.append(str(asked.target))
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.taken_back.append(str(asked.target))
            raise


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_connections_to_one_target_wait_for_one_answer() -> None:
    person = Person()
    ask = SharedAsk(person)
    waiting = [asyncio.create_task(ask(question("a.example:443"))) for _ in range(5)]
    other = asyncio.create_task(ask(question("b.example:443")))
    await settle()
    assert sorted(person.asked) == ["a.example:443", "b.example:443"]
    person.answer.set_result(True)
    assert await asyncio.gather(*waiting, other) == [True] * 6
    assert await ask(question("a.example:443"))
    assert person.asked.count("a.example:443") == 2


async def test_one_that_gives_up_leaves_the_question_to_the_others() -> None:
    person = Person()
    ask = SharedAsk(person)
    first, second = (asyncio.create_task(ask(question("a.example:443"))) for _ in range(2))
    await settle()
    first.cancel()
    await settle()
    assert person.taken_back == []
    person.answer.set_result(False)
    assert await second is False


async def test_a_question_that_nobody_waits_for_is_taken_back() -> None:
    person = Person()
    ask = SharedAsk(person)
    waiting = [asyncio.create_task(ask(question("a.example:443"))) for _ in range(3)]
    await settle()
    for task in waiting:
        task.cancel()
    await settle()
    assert person.taken_back == ["a.example:443"]
    again = asyncio.create_task(ask(question("a.example:443")))
    await settle()
    assert len(person.asked) == 2
    person.answer.set_result(True)
    assert await again


async def test_what_breaks_in_the_asking_reaches_everyone_who_waits() -> None:
    async def broken(_: Question) -> bool:
        await asyncio.sleep(0)
        raise RuntimeError("the line is cut")

    ask = SharedAsk(broken)
    results = await asyncio.gather(
        *(ask(question("a.example:443")) for _ in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [RuntimeError] * 3
    with pytest.raises(RuntimeError):
        await ask(question("a.example:443"))
