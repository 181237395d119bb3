"""Run RL-Insight's commands."""

import sys

from rollscope.integrations.rl_insight.command import main

sys.exit(main())
