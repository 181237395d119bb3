"""`rollscope server config`: the files of the stack, for use elsewhere."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from rollscope.cli.arguments import add_examples
from rollscope.errors import CommandError

__all__ = ["ConfigCommand"]

_OUT: Final = "rollscope-monitoring"


class ConfigCommand:
    """Writes configurations."""

    name = "config"
    summary = "write the configurations, for containers or an existing monitoring stack"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--out", type=Path, default=Path(_OUT), metavar="DIR", help=f"(default: {_OUT})"
        )
        parser.add_argument(
            "--compose", action="store_true", help="write a compose file, to run containers"
        )
        parser.add_argument(
            "--for",
            dest="target",
            choices=("existing",),
            help="write only what an existing Prometheus, Alertmanager, Tempo and Grafana need",
        )
        parser.add_argument(
            "--server",
            default="http://127.0.0.1:7077/",
            metavar="URL",
            help="where the page will be (default: http://127.0.0.1:7077/)",
        )
        parser.add_argument(
            "--retention",
            default="15d",
            metavar="TIME",
            help="how long Prometheus and Tempo keep what they get (default: 15d)",
        )
        parser.add_argument("--force", action="store_true", help="replace files that are there")
        add_examples(
            parser,
            "example: rollscope server config --compose --out monitoring",
            "         rollscope server config --for existing --server http://head:7077/",
        )

    def run(self, args: Namespace) -> int:
        """Write them, and say where to begin."""
        from rollscope.stack.exporting import Form, export_files, stack_files

        if args.compose and args.target is not None:
            raise CommandError("--compose and --for exclude each other", 2)
        form: Form = "compose" if args.compose else args.target or "native"
        place = args.out.absolute()
        page = args.server.rstrip("/") + "/"
        files = stack_files(form, place, page, args.retention)
        written = export_files(place, files, can_replace=args.force)
        print(f"Wrote {len(written)} files; begin with {place / 'README.md'}.")
        return 0
