from __future__ import annotations

import pytest

from rollscope.instrument.sinks import httpaddress
from rollscope.instrument.sinks.httpaddress import is_loopback, parse_address


@pytest.mark.parametrize(
    ("text", "shown", "token"),
    [
        ("http://head:7077", "http://head:7077", None),
        ("http://HEAD:7077/", "http://head:7077", None),
        ("http://head", "http://head:80", None),
        ("https://head/proxy/7077/", "https://head:443/proxy/7077", None),
        ("http://[::1]:7077", "http://[::1]:7077", None),
        ("http://127.0.0.1:7077/?token=a%2Bb_c", "http://127.0.0.1:7077", "a+b_c"),
    ],
)
def test_an_address_is_taken_apart(text: str, shown: str, token: str | None) -> None:
    address = parse_address(text)
    assert (address.shown, address.token) == (shown, token)


@pytest.mark.parametrize("text", ["head:7077", "ftp://head", "http://", "http://head:99999"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|[Pp]ort"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("localhost", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("head", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_this_machine_is_known_by_its_names(host: str, is_so: bool) -> None:
    assert is_loopback(host) == is_so


def test_a_proxy_of_the_environment_is_used_but_not_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("https_proxy", "proxy:3129")
    monkeypatch.setenv("no_proxy", "inside")

    def proxy(address: str) -> str | None:
        found = httpaddress._proxy_for(parse_address(address))
        return None if found is None else found.shown

    assert proxy("http://head:7077") == "http://proxy:3128"
    assert proxy("https://head:7077") == "http://proxy:3129"
    assert proxy("http://inside:7077") is None
    assert proxy("http://127.0.0.1:7077") is None
    assert proxy("http://localhost:7077") is None
