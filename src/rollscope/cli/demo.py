"""`rollscope demo`: a simulated rollout run, recorded for real and read back."""

from argparse import ArgumentParser, Namespace

__all__ = ["DemoCommand"]


class DemoCommand:
    """Records a small run and shows it."""

    name = "demo"
    summary = "record a simulated run and show where its time went"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: Namespace) -> int:
        """Run it."""
        return 0
