"""Telling a server something without making the trainer wait: one thread for each request."""

import json
import os
import threading
from http.client import HTTPException
from typing import Final

from rollscope.instrument.guard import tell
from rollscope.instrument.sinks.httpaddress import connect_http, parse_address

__all__ = ["post_in_background", "wait_for_posts"]

_TIMEOUT_S: Final = 5.0
_SHOWN: Final = 300
_posts: set[threading.Thread] = set()


def post_in_background(url: str, path: str, body: object = None, method: str = "POST") -> None:
    """Send JSON to a server; trouble is logged."""

    def send() -> None:
        try:
            _send(url, path, body, method)
        except (OSError, HTTPException, ValueError) as error:
            shown = parse_address(url).shown if "://" in url else url
            tell("%s could not be told of metrics: %s", shown, error)
        finally:
            _posts.discard(threading.current_thread())

    # Not a daemon: a program that ends right after is let finish, within the timeout.
    thread = threading.Thread(target=send, name="rollscope-rl-insight-post")
    _posts.add(thread)
    thread.start()


def wait_for_posts(timeout_s: float = _TIMEOUT_S) -> None:
    """Wait until all that was to be sent is sent, or has failed."""
    for thread in list(_posts):
        thread.join(timeout_s)


def _send(url: str, path: str, body: object, method: str) -> None:
    address = parse_address(url)
    token = address.token or os.environ.get("ROLLSCOPE_TOKEN")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection, prefix = connect_http(address, os.environ.get("ROLLSCOPE_CA_FILE"))
    try:
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, f"{prefix}{path}", sent, headers)
        answer = connection.getresponse()
        said = answer.read(_SHOWN).decode(errors="replace")
        if answer.status >= 400:
            raise ValueError(f"it answers {answer.status}: {said}")
    finally:
        connection.close()
