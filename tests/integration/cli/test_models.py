"""`io-harness models`, against a provider on loopback."""

from .conftest import Shell


def test_a_provider_without_its_key_is_told_and_not_asked(shell: Shell) -> None:
    done = shell.run("models", "--provider", "anthropic", "--json")
    assert done.code == 6
    listing = done.json
    assert listing["state"] == "not configured"
    assert "ANTHROPIC_API_KEY" in listing["problem"]


def test_an_unknown_provider_is_a_usage_error_that_names_the_known(shell: Shell) -> None:
    done = shell.run("models", "--provider", "antropic")
    assert done.code == 2
    assert "anthropic" in done.err
