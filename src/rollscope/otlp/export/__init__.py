"""The way out: spans and metrics of a run as OTLP, to an endpoint or a file.

`rows` reads them from the store, `spans` and `points` give them the form of OpenTelemetry, `wire`
and `jsonwire` write requests, `sending` delivers them, `position` remembers how far that got, and
`exporter` does it all in order; `forwarding` does so for all runs of a directory. `families` writes
what runs show to monitoring systems.
"""
