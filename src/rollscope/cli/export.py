"""`rollscope export`: a run for other tools, in one of several formats."""

from argparse import ArgumentParser, Namespace

from rollscope.cli.arguments import add_examples, add_scope
from rollscope.cli.exporting.formats import FORMATS, check_options, configure_formats
from rollscope.cli.reading import add_reading_arguments

__all__ = ["ExportCommand"]


class ExportCommand:
    """Hands a run to the format that was asked for."""

    name = "export"
    summary = "a run for other tools: as traces, tables or JSON lines"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument("--format", choices=tuple(FORMATS), default="otlp",
                            help="(default: otlp)")  # fmt: skip
        parser.add_argument(
            "-o",
            "--output",
            metavar="FILE",
            help="the file or folder to write, - for the output (default of all but otlp: a name "
            "beside the run, such as RUN.json)",
        )
        add_scope(parser)
        configure_formats(parser)
        add_examples(
            parser,
            "example: rollscope export runs/my-run --format perfetto",
            "         rollscope export runs/my-run --format chrome --gzip --scope 30-40",
            "         rollscope export runs/my-run --format csv --tables sessions,steps",
            "         rollscope export runs/my-run --endpoint http://tempo:4318",
            "         rollscope export runs/my-run -o my-run.jsonl --scope 30-40",
            "         rollscope export runs/my-run --endpoint http://tempo:4318 --follow "
            "--state my-run.sent",
            "         rollscope export --every-run --dir runs --endpoint http://tempo:4318 "
            "--follow --state-dir sent",
            "",
            "OTEL_EXPORTER_OTLP_* and other variables of OpenTelemetry count where nothing else is "
            "said.",
        )

    def run(self, args: Namespace) -> int:
        """Export."""
        check_options(args)
        return FORMATS[args.format].run(args)
