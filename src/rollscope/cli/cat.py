"""`rollscope cat`: the records of a run as JSON lines."""

import sys
import time
from argparse import ArgumentParser, Namespace

import msgspec

from rollscope.store.run import RunFollower, find_run

__all__ = ["CatCommand"]

_FOLLOW_EVERY_S = 0.2


class CatCommand:
    """Prints one JSON object a record."""

    name = "cat"
    summary = "print the records of a run, one JSON object a line"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("run", help="a run directory, one of its .rsl logs, or a run's name")
        parser.add_argument("--dir", default="runs", help="where named runs are (default: runs)")
        parser.add_argument(
            "-f", "--follow", action="store_true", help="go on as the run grows; Ctrl-C ends it"
        )
        parser.add_argument(
            "--payloads", action="store_true", help="include payloads (messages, tokens)"
        )

    def run(self, args: Namespace) -> int:
        """Print the records; problems go to the error stream and make the exit code 1."""
        follower = RunFollower(find_run(args.run, args.dir), payloads=args.payloads)
        told: set[str] = set()
        try:
            while True:
                _print_records(follower, final=not args.follow)
                _print_problems(follower, told)
                if not args.follow:
                    return 1 if told else 0
                time.sleep(_FOLLOW_EVERY_S)
        except KeyboardInterrupt:
            return 0


def _print_records(follower: RunFollower, *, final: bool) -> None:
    out = sys.stdout.buffer
    for record in follower.poll(final=final):
        # Odd attributes, such as extension types of other writers, have no JSON of their own.
        out.write(msgspec.json.encode(record, enc_hook=str) + b"\n")
    out.flush()


def _print_problems(follower: RunFollower, told: set[str]) -> None:
    for problem in follower.problems:
        if problem not in told:
            told.add(problem)
            print(f"rollscope: {problem}", file=sys.stderr)
