"""Credentials come from a variable, or from the file that its `_FILE` names."""

from pathlib import Path

import pytest

from io_harness.activities.settings import CredentialUnreadable, credential


def test_a_file_is_read_where_the_variable_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("sk-from-file\n")
    monkeypatch.delenv("A_KEY", raising=False)
    assert credential("A_KEY") == ""
    monkeypatch.setenv("A_KEY_FILE", str(tmp_path / "key"))
    assert credential("A_KEY") == "sk-from-file"
    monkeypatch.setenv("A_KEY", "")  # as compose sets what is not given
    assert credential("A_KEY") == "sk-from-file"
    monkeypatch.setenv("A_KEY", "sk-from-variable")
    assert credential("A_KEY") == "sk-from-variable"


def test_a_file_that_can_t_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(CredentialUnreadable, match=r"ANTHROPIC_API_KEY_FILE: .*nowhere"):
        credential("ANTHROPIC_API_KEY")
