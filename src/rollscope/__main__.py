"""Lets `python -m rollscope` do what `rollscope` does."""

import sys

from rollscope.cli.main import main

sys.exit(main())
