"""OpenTelemetry's protocol: from its requests to spans, metrics and facts of a run.

`protobuf` and `jsonform` read requests, `placing` finds the run and session of each span, `writing`
puts it into the log of its sender. HTTP is the server's; gRPC stands here, since it brings a server
of its own.
"""
