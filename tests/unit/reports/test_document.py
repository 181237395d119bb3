"""The file around the data."""

import base64
import hashlib
import re

import pytest

from rollscope.reports import document
from rollscope.reports.document import data_element, read_shell


def _pages(monkeypatch: pytest.MonkeyPatch, script: str, style: str = "a{}") -> None:
    index = (
        '<!doctype html><html><head><meta charset="utf-8" />'
        '<link rel="stylesheet" href="app.css" /><script defer src="app.js"></script></head>'
        '<body><div id="app"></div></body></html>'
    )
    files = {"index.html": index, "report.js": script, "app.css": style}
    monkeypatch.setattr(document, "read_asset", lambda name: files[name].encode())


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_only_the_script_and_the_style_inside_may_run() -> None:
    shell = read_shell()
    page = (shell.before + shell.behind).decode()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.split("; ")[:3] == [
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
    ]
    assert "src=" not in page.replace(script, "").replace(style, "")
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_text_in_the_code_cannot_end_its_element(monkeypatch: pytest.MonkeyPatch) -> None:
    _pages(monkeypatch, 'let a = "</script><!--", b = "</SCRIPT >";\r\nlet c;')
    behind = read_shell().behind.decode()
    assert behind.count("</script") == 1
    assert "</SCRIPT" not in behind
    assert "<!--" not in behind
    assert "\r" not in behind


def test_a_page_of_another_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "read_asset", lambda _: b"<html></html>")
    with pytest.raises(ImportError, match="make web"):
        read_shell()


def test_data_is_in_an_element_that_nothing_in_it_can_end() -> None:
    element = b"".join(data_element("one", b"</script><script>alert(1)</script>"))
    assert element.count(b"<") == 2
    assert base64.b64decode(element.split(b">")[1].split(b"<")[0]).startswith(b"</script>")
