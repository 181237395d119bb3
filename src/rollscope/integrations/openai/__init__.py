"""Calls of the `openai` package as phases `generate` of the session they are made in.

    from rollscope.integrations import openai as traced

    traced.instrument(client)

The package is imported when every client is to be traced, and not before.
"""

from rollscope.integrations.openai.instrumenting import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
