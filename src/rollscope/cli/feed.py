"""`rollscope feed`: puts a run into ClickHouse, once or as it grows."""

import signal
import sys
import threading
from argparse import ArgumentParser, Namespace

from rollscope.cli.reading import add_reading_arguments, open_run

__all__ = ["FeedCommand"]


class FeedCommand:
    """Feeds a run to a ClickHouse server."""

    name = "feed"
    summary = "put a run into ClickHouse, where many can ask it"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument(
            "--to",
            required=True,
            metavar="ADDRESS",
            help="the server, as clickhouse://[USER@]HOST[:PORT]/DATABASE, or clickhouses:// for "
            "TLS; the password comes from CLICKHOUSE_PASSWORD",
        )
        parser.add_argument(
            "--as", dest="known_as", metavar="NAME", help="what the run is called there"
        )
        parser.add_argument("--follow", action="store_true", help="go on as the run grows")
        parser.add_argument(
            "--ttl-days", type=int, metavar="N", help="let new tables forget rows after N days"
        )

    def run(self, args: Namespace) -> int:
        """Feed, and say what was sent."""
        with open_run(args) as store:
            from rollscope.cli.terminal.output import print_json
            from rollscope.store.clickhouse.address import connect
            from rollscope.store.clickhouse.feed import Feeder, follow
            from rollscope.store.clickhouse.tables import create_tables

            server = connect(args.to)
            create_tables(server, ttl_days=args.ttl_days)
            name = args.known_as or store.path.resolve().name
            feeder = Feeder(store, server, name)
            fed = feeder.feed()
            if args.json:
                print_json(fed)
            else:
                print(f"{fed.rows} rows sent, {fed.segments} sealed files among them")
            if args.follow:
                stop = threading.Event()
                signal.signal(signal.SIGTERM, lambda *_: stop.set())
                print(f"rollscope: feeding {name}; Ctrl+C ends it", file=sys.stderr)
                follow(feeder, store, stop)
        return 0
