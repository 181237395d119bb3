"""Python's own HTTP client, without proxies and redirects.

Who is asked stands inside a cluster, where a proxy does not lead. A redirect would take a token to
somebody else, and turn a POST into a GET that looks like success.
"""

from http.client import HTTPMessage
from typing import IO
from urllib.request import (
    BaseHandler,
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

__all__ = ["direct_opener"]


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def direct_opener(*handlers: BaseHandler) -> OpenerDirector:
    """Give what opens addresses, with handlers beside its own; a redirect raises `HTTPError`."""
    return build_opener(ProxyHandler({}), _NoRedirect(), *handlers)
