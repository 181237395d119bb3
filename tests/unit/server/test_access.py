from __future__ import annotations

import pytest

from rollscope.server.access import Access, Caller, is_loopback, split_host

TOKEN = "the-right-token"  # noqa: S105  (of no server)
ACCESS = Access(token=TOKEN, port=7077, hosts=frozenset({"gpu-07.cluster"}))


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        ("localhost:7077", True),
        ("LOCALHOST", True),
        ("127.0.0.1:9999", True),
        ("[::1]:7077", True),
        ("gpu-07.cluster:80", True),
        ("gpu-07.cluster.", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("evil.example:7077", False),
        ("localhost@evil.example", False),
        ("localhost/evil", False),
        ("localhost:port", False),
        ("", False),
        (None, False),
    ],
)
def test_only_names_of_its_own_are_served(header: str | None, is_known: bool) -> None:
    assert ACCESS.knows_host(header) is is_known


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, Caller.NOBODY),
        ({"authorization": "Bearer the-right-token"}, Caller.BEARER),
        ({"authorization": "bearer  the-right-token "}, Caller.BEARER),
        ({"authorization": "Bearer the-wrong-token"}, Caller.NOBODY),
        ({"authorization": "Bearer ï"}, Caller.NOBODY),
        ({"authorization": "Basic the-right-token"}, Caller.NOBODY),
        ({"host": "localhost:1", "cookie": "rollscope-1=the-right-token"}, Caller.COOKIE),
        ({"host": "localhost:1", "cookie": "rollscope-2=the-right-token"}, Caller.NOBODY),
        ({"host": "localhost", "cookie": "rollscope-7077=the-right-token"}, Caller.COOKIE),
        ({"host": "localhost:1", "cookie": "rollscope-1="}, Caller.NOBODY),
        ({"host": "localhost:1", "cookie": "a[]=1; rollscope-1"}, Caller.NOBODY),
    ],
)
def test_a_caller_is_known_by_cookie_or_bearer(headers: dict[str, str], caller: Caller) -> None:
    assert ACCESS.caller(headers) is caller


def test_without_a_token_everybody_may_ask_and_none_is_right() -> None:
    access = Access(token=None, port=7077)

    assert access.caller({}) is Caller.OPEN
    assert not access.is_token("")


@pytest.mark.parametrize(
    ("headers", "is_foreign", "is_own"),
    [
        ({}, False, False),
        ({"sec-fetch-site": "none"}, False, False),
        ({"sec-fetch-site": "same-origin"}, False, True),
        ({"sec-fetch-site": "same-site"}, True, False),
        ({"sec-fetch-site": "cross-site"}, True, False),
        ({"origin": "http://localhost:1"}, False, True),
        ({"origin": "https://LOCALHOST:1"}, False, True),
        ({"origin": "http://localhost:2"}, True, False),
        ({"origin": "http://evil.example"}, True, False),
        ({"origin": "null"}, True, False),
        ({"origin": "file://"}, True, False),
    ],
)
def test_other_sites_are_told_apart_from_our_own_page(
    headers: dict[str, str], is_foreign: bool, is_own: bool
) -> None:
    asked = {"host": "localhost:1", **headers}

    assert (Access.is_foreign(asked), Access.is_own(asked)) == (is_foreign, is_own)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104  (only compared)
        ("10.0.0.4", False),
        ("gpu-07", False),
    ],
)
def test_loopback_addresses_are_known(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


def test_a_host_header_is_split_without_its_brackets() -> None:
    assert split_host("[::1]:80") == ("::1", 80)
    assert split_host("Name:8") == ("name", 8)
