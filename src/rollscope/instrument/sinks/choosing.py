"""Which sink the settings mean."""

import importlib

from rollscope.config import Settings
from rollscope.errors import MissingExtra
from rollscope.instrument.sinks import NullSink, Sink

__all__ = ["make_sink"]

_RAY_MODULE = "rollscope.rayhub.sink"


def make_sink(settings: Settings) -> Sink:
    """Make the sink that was asked for, loading only what it needs.

    Raises:
        MissingExtra: What it needs is not installed.
    """
    chosen = settings.sink
    if chosen == "file":
        from rollscope.instrument.sinks.file import FileSink

        return FileSink()
    if chosen == "none":
        return NullSink()
    if not isinstance(chosen, str):
        given: Sink = chosen
        return given
    spool_dir, spool_mb = settings.spool_dir, settings.spool_mb
    if chosen == "ray":
        ray_sink: Sink = _load_ray_sink()("ray", spool_dir=spool_dir, spool_mb=spool_mb)
        return ray_sink
    from rollscope.instrument.sinks.http import HttpSink

    return HttpSink(
        chosen,
        token=settings.token,
        ca_file=settings.ca_file,
        spool_dir=spool_dir,
        spool_mb=spool_mb,
    )


def _load_ray_sink() -> type:
    # By name: it stands above this layer, and brings Ray.
    try:
        sink: type = importlib.import_module(_RAY_MODULE).RaySink
    except ImportError as error:
        raise MissingExtra(
            f"sink 'ray' needs Ray ({error}); install with: pip install 'rollscope[ray]'"
        ) from error
    return sink
