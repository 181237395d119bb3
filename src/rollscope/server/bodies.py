"""Bodies that are kept: bytes with their digest, packed once, sent to many."""

import gzip
import hashlib
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

__all__ = ["Body", "body_response", "make_body"]

_WORTH_PACKING: Final = 1024
_QUICK: Final = 4
"""The level of gzip: more takes longer than the bytes it saves do on any link."""


class Body(msgspec.Struct, frozen=True):
    """An answer as it is sent."""

    media_type: str
    plain: bytes
    gzipped: bytes | None
    etag: str

    @property
    def size(self) -> int:
        """How many bytes it takes up."""
        return len(self.plain) + len(self.gzipped or b"")


def make_body(plain: bytes, media_type: str = "application/json", *, packs: bool = True) -> Body:
    """Make a body of bytes.

    Args:
        plain: What is to be said.
        media_type: What kind of bytes they are.
        packs: Make a gzipped twin; not for what is packed already.
    """
    gzipped = None
    if packs and len(plain) >= _WORTH_PACKING:
        gzipped = gzip.compress(plain, _QUICK, mtime=0)
    digest = hashlib.blake2b(plain, digest_size=12).hexdigest()
    return Body(media_type, plain, gzipped, f'"{digest}"')


def body_response(request: Request, body: Body) -> Response:
    """Send a body, or only say that the browser has it already."""
    headers = {"Cache-Control": "no-cache", "ETag": body.etag, "Vary": "Accept-Encoding"}
    if body.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = body.plain
    if body.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content = body.gzipped
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type=body.media_type)
