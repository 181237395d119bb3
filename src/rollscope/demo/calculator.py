"""The program of the demo's tool: reads a product per line, writes its value.

It runs by itself, with nothing of Rollscope and no way to do harm: one kind of expression, little
memory, no files, no children.
"""

import re
import resource
import sys

__all__ = ["main"]

_PRODUCT = re.compile(r"(\d{1,6})\*(\d{1,6})")


def main() -> None:
    """Answer until the input ends; `hang` is never answered."""
    for limit, most in (
        (resource.RLIMIT_AS, 512 * 1024 * 1024),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(limit, (most, most))
    for line in sys.stdin:
        asked = line.strip()
        if asked == "hang":
            sys.stdin.read()  # until whoever asked lets go of the pipe, or is gone
            return
        found = _PRODUCT.fullmatch(asked)
        answer = str(int(found[1]) * int(found[2])) if found else "error"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
