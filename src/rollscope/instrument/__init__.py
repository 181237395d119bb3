"""Instrumentation: what runs inside the traced program. Light, quiet, and never in its way."""
