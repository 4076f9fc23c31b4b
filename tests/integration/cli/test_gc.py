"""`io-harness gc`: a live or resettable run keeps what it needs, and the rest goes."""

from .conftest import Recorded, Shell
from .test_commands import WRITE


def test_only_what_nobody_can_come_back_to_goes(shared: Shell, recorded: Recorded) -> None:
    left = shared.run(
        "run", "--goal", "greet", "--id", "gc-waits", "--verify", "true", "--model",
        recorded(WRITE), "--json",
    )  # fmt: skip
    assert left.code == 5, left.err
    orphan = shared.home / "runs" / "nobody-knows-01234567"
    orphan.mkdir(parents=True)
    (orphan / "file").write_text("x")
    dry = shared.run("gc", "--dry-run", "--run-days", "0", "--copy-days", "0", "--json")
    assert dry.code == 0, dry.err
    assert dry.json["runs"] == ["nobody-knows-01234567"]
    assert orphan.exists()
    done = shared.run("gc", "--run-days", "0", "--copy-days", "0", "--json")
    assert done.code == 0, done.err
    assert not orphan.exists()
    assert not [key for key in done.json["copies"] if key.startswith("gc-waits")]
    approved = shared.run("approve", "gc-waits")
    assert approved.code == 0, approved.err
    ended = shared.run("watch", "gc-waits", "--json")
    assert ended.json["outcome"] == "success", ended.err
