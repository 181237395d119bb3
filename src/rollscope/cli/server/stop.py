"""`rollscope server stop`: end what runs, from any terminal."""

from argparse import ArgumentParser, Namespace

from rollscope.cli.server.table import add_state_dir, state_dir

__all__ = ["StopCommand"]


class StopCommand:
    """Ends the stack."""

    name = "stop"
    summary = "end the server and everything that was started with it"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_state_dir(parser)

    def run(self, args: Namespace) -> int:
        """End it, and say what was ended."""
        from rollscope.stack.stopping import stop_stack

        where = state_dir(args)
        ended = stop_stack(where)
        if ended:
            print(f"Stopped: {', '.join(ended)}.")
        else:
            print(f"Nothing is running in {where.path}.")
        return 0
