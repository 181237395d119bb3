"""Run RL-Insight's commands."""

import sys

from rollscope.integrations.rl_insight.command import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
