"""How to export: what was asked for on the command line, else what OpenTelemetry's variables say.

A variable for one signal comes before the one for all, and an argument before both. A number that
cannot be read is an error here: a command can say so, where a library has to go on.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar
from urllib.parse import unquote

import msgspec

from rollscope.errors import SettingError
from rollscope.instrument.sinks.httpaddress import split_http
from rollscope.otlp.answering import Signal

__all__ = ["PROTOCOLS", "ExportSettings", "parse_pairs", "read_settings"]

T = TypeVar("T")

PROTOCOLS: Final = ("http/protobuf", "http/json", "grpc")
_COMPRESSIONS: Final = ("gzip", "none")
_TRUE: Final = "true"
_NONE: Final = "none"
_RATIOS: Final = {"always_on": 1.0, "always_off": 0.0}
_RATIO_SAMPLERS: Final = frozenset({"traceidratio"})
_PARENT: Final = "parentbased_"


class ExportSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Everything that decides where spans go and what they look like."""

    endpoints: Mapping[Signal, str]
    """By signal; for HTTP with the path. Empty if none was given."""
    protocol: str = "http/protobuf"
    headers: Mapping[str, str] = {}
    timeout_s: float = 10.0
    """For one request."""
    patience_s: float = 30.0
    """For one batch, all tries together."""
    compression: str = "gzip"
    certificate: str | None = None
    """Of who signed the endpoint's; a file."""
    is_off: bool = False
    """Whether OpenTelemetry is switched off altogether, or for traces."""
    are_metrics_off: bool = False
    service_name: str | None = None
    resource: Mapping[str, str] = {}
    sampled_share: float = 1.0
    batch_spans: int = 512
    every_s: float = 1.0
    """How often a run that is followed is looked at."""
    most_characters: int | None = None


class _Reader:
    """Reads variables, and says which one is wrong."""

    def __init__(self, env: Mapping[str, str], signal: Signal) -> None:
        self._env = env
        self._signal = signal

    def text(self, *names: str) -> str | None:
        """Give the first that is set; an empty one counts as not set."""
        return next((self._env[name].strip() for name in names if self._env.get(name)), None)

    def read(self, convert: Callable[[str], T], default: T, *names: str) -> T:
        for name in names:
            if self._env.get(name):
                try:
                    return convert(self._env[name].strip())
                except ValueError as error:
                    raise SettingError(f"{name} is {self._env[name]!r}: {error}") from None
        return default

    def otlp(self, what: str) -> tuple[str, str]:
        """Name the variables of a setting: for the signal, then for all signals."""
        own = f"OTEL_EXPORTER_OTLP_{self._signal.upper()}_{what}"
        return own, f"OTEL_EXPORTER_OTLP_{what}"


def read_settings(
    env: Mapping[str, str],
    *,
    signal: Signal = Signal.TRACES,
    endpoint: str | None = None,
    protocol: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    compression: str | None = None,
    certificate: str | None = None,
    batch_spans: int | None = None,
) -> ExportSettings:
    """Read the settings; arguments that are not None come first.

    Args:
        env: OpenTelemetry's variables, among others.
        signal: Whose own variables come before those for all signals.
        endpoint: For all signals; a path of a signal is added.
        protocol: One of `PROTOCOLS`.
        headers: Added to those of the variables.
        timeout_s: For one request.
        compression: `gzip` or `none`.
        certificate: A file with who signed the endpoint's.
        batch_spans: How many go in one request.

    Raises:
        SettingError: A variable has a value that cannot be used.
    """
    reader = _Reader(env, signal)
    chosen = protocol or reader.read(_one_of(*PROTOCOLS), PROTOCOLS[0], *reader.otlp("PROTOCOL"))
    resource = reader.read(parse_pairs, dict[str, str](), "OTEL_RESOURCE_ATTRIBUTES")
    service = reader.text("OTEL_SERVICE_NAME") or resource.get("service.name")
    queue = reader.read(_whole, 2048, "OTEL_BSP_MAX_QUEUE_SIZE")
    batch = reader.read(_whole, 512, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
    given = reader.read(parse_pairs, dict[str, str](), *reader.otlp("HEADERS"))
    timeout_ms = reader.read(_whole, 10_000, *reader.otlp("TIMEOUT"))
    is_disabled = (reader.text("OTEL_SDK_DISABLED") or "").lower() == _TRUE
    return ExportSettings(
        endpoints=_endpoints(reader, endpoint, chosen),
        protocol=chosen,
        headers={**given, **(headers or {})},
        timeout_s=timeout_s or timeout_ms / 1e3,
        patience_s=reader.read(_whole, 30_000, "OTEL_BSP_EXPORT_TIMEOUT") / 1e3,
        compression=compression
        or reader.read(_one_of(*_COMPRESSIONS), "gzip", *reader.otlp("COMPRESSION")),
        certificate=certificate or reader.text(*reader.otlp("CERTIFICATE")),
        is_off=is_disabled or reader.text("OTEL_TRACES_EXPORTER") == _NONE,
        are_metrics_off=is_disabled or reader.text("OTEL_METRICS_EXPORTER") == _NONE,
        service_name=service,
        resource=resource,
        sampled_share=_sampled_share(reader),
        batch_spans=batch_spans or min(batch, queue),
        every_s=reader.read(_whole, 1_000, "OTEL_BSP_SCHEDULE_DELAY") / 1e3,
        most_characters=reader.read(
            _whole,
            None,
            "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
            "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        ),
    )


def _endpoints(reader: _Reader, endpoint: str | None, protocol: str) -> dict[Signal, str]:
    """Give the address of each signal; one for all gets the path of the signal at its end."""
    found = {}
    for signal in (Signal.TRACES, Signal.METRICS):
        own = reader.text(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        shared = endpoint or reader.text("OTEL_EXPORTER_OTLP_ENDPOINT")
        if own is not None and endpoint is None:
            found[signal] = _checked(own, protocol)
        elif shared is not None:
            address = _checked(shared, protocol)
            is_http = protocol != "grpc"
            found[signal] = _with_path(address, signal) if is_http else address
    return found


def _checked(address: str, protocol: str) -> str:
    if protocol == "grpc" and "://" not in address:
        address = f"http://{address}"
    if split_http(address) is None:
        raise SettingError(f"{address!r} is no endpoint such as http://HOST:4318")
    return address


def _with_path(address: str, signal: Signal) -> str:
    base, mark, query = address.partition("?")
    base = base.rstrip("/")
    for known in Signal:
        base = base.removesuffix(f"/v1/{known}")
    return f"{base}/v1/{signal}{mark}{query}"


def parse_pairs(text: str) -> dict[str, str]:
    """Read `name=value,name=value`, the values percent-encoded.

    Raises:
        ValueError: A part is not of that form.
    """
    pairs = {}
    for part in text.split(","):
        if not part.strip():
            continue
        name, is_given, value = part.partition("=")
        if not is_given or not name.strip():
            raise ValueError(f"{part.strip()!r} is not of the form NAME=VALUE")
        pairs[unquote(name.strip())] = unquote(value.strip())
    return pairs


def _sampled_share(reader: _Reader) -> float:
    name = (reader.text("OTEL_TRACES_SAMPLER") or "always_on").removeprefix(_PARENT)
    if name in _RATIOS:
        return _RATIOS[name]
    if name not in _RATIO_SAMPLERS:
        known = ", ".join(sorted({*_RATIOS, *_RATIO_SAMPLERS}))
        raise SettingError(
            f"OTEL_TRACES_SAMPLER is {name!r}; use {known}, each also with {_PARENT} before it"
        )
    return reader.read(_share, 1.0, "OTEL_TRACES_SAMPLER_ARG")


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError("a share lies between 0 and 1")
    return share


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number of 1 or more is wanted")
    return int(text)


def _one_of(*allowed: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"use {' or '.join(allowed)}")
        return text

    return convert
