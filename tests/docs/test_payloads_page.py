"""The page on payloads says what happens."""

import re
from pathlib import Path

import pytest

import rollscope as rs
from rollscope.answers.payloads import session_payloads
from rollscope.store.embedded import RunStore

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "payloads.md").read_text()


def test_the_examples_keep_and_redact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keeping, redacting = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(keeping, {})  # noqa: S102  (our own page)
    exec(redacting, {"__name__": "page"})  # noqa: S102
    with rs.task("a/1"), rs.session(sample=0):
        rs.payload("system_prompt", "be kind")
        rs.payload("messages", [{"role": "user", "content": "use sk-12345 now"}])
    rs.shutdown()

    with RunStore(Path("runs/demo"), threads=1) as store:
        talk = session_payloads(store, "gsm8k/8421#0").messages
    assert [(one.role, one.text) for one in talk] == [
        ("user", "What is 6 * 7?"),
        ("assistant", "42"),
    ]
    with RunStore(Path("runs/redacted"), threads=1) as store:
        (message,) = session_payloads(store, "a/1#0").messages
    assert (message.role, message.text) == ("user", "use *** now")
