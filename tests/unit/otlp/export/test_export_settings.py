from __future__ import annotations

from typing import Any

import pytest

from rollscope.errors import SettingError
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.settings import read_settings

BASE = "OTEL_EXPORTER_OTLP_"


@pytest.mark.parametrize(
    ("env", "arguments", "field", "value"),
    [
        ({}, {}, "protocol", "http/protobuf"),
        ({f"{BASE}PROTOCOL": "grpc"}, {}, "protocol", "grpc"),
        (
            {f"{BASE}PROTOCOL": "grpc", f"{BASE}TRACES_PROTOCOL": "http/json"},
            {},
            "protocol",
            "http/json",
        ),
        ({f"{BASE}TRACES_PROTOCOL": "grpc"}, {"protocol": "http/json"}, "protocol", "http/json"),
        ({f"{BASE}HEADERS": "a=1, b=x%20y"}, {}, "headers", {"a": "1", "b": "x y"}),
        ({f"{BASE}HEADERS": "a=1,b=2"}, {"headers": {"a": "3"}}, "headers", {"a": "3", "b": "2"}),
        ({f"{BASE}HEADERS": "a=1", f"{BASE}TRACES_HEADERS": "b=2"}, {}, "headers", {"b": "2"}),
        ({}, {}, "timeout_s", 10.0),
        ({f"{BASE}TIMEOUT": "2500"}, {}, "timeout_s", 2.5),
        ({f"{BASE}TIMEOUT": "2500"}, {"timeout_s": 1.0}, "timeout_s", 1.0),
        ({}, {}, "compression", "gzip"),
        ({f"{BASE}COMPRESSION": "none"}, {}, "compression", "none"),
        ({f"{BASE}CERTIFICATE": "/a.pem"}, {}, "certificate", "/a.pem"),
        ({f"{BASE}CERTIFICATE": ""}, {}, "certificate", None),
        ({"OTEL_SDK_DISABLED": "TRUE"}, {}, "is_off", True),
        ({"OTEL_SDK_DISABLED": "1"}, {}, "is_off", False),
        ({"OTEL_TRACES_EXPORTER": "none"}, {}, "is_off", True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {}, "is_off", False),
        ({"OTEL_METRICS_EXPORTER": "none"}, {}, "are_metrics_off", True),
        ({"OTEL_SERVICE_NAME": "mine"}, {}, "service_name", "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,team=x"}, {}, "service_name", "a"),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b"},
            {},
            "service_name",
            "b",
        ),
        ({"OTEL_RESOURCE_ATTRIBUTES": "team=x%2Cy"}, {}, "resource", {"team": "x,y"}),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, {}, "sampled_share", 0.0),
        (
            {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
            {},
            "sampled_share",
            0.25,
        ),
        ({"OTEL_TRACES_SAMPLER_ARG": "0.25"}, {}, "sampled_share", 1.0),
        ({"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "64"}, {}, "batch_spans", 64),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "100"}, {}, "batch_spans", 100),
        ({"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "64"}, {"batch_spans": 8}, "batch_spans", 8),
        ({"OTEL_BSP_SCHEDULE_DELAY": "200"}, {}, "every_s", 0.2),
        ({"OTEL_BSP_EXPORT_TIMEOUT": "5000"}, {}, "patience_s", 5.0),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "100"}, {}, "most_characters", 100),
    ],
)
def test_an_argument_comes_before_a_signals_variable_before_the_general_one(
    env: dict[str, str], arguments: dict[str, Any], field: str, value: object
) -> None:
    assert getattr(read_settings(env, **arguments), field) == value


@pytest.mark.parametrize(
    ("env", "arguments", "traces", "metrics"),
    [
        ({}, {}, None, None),
        ({f"{BASE}ENDPOINT": "http://c:4318"}, {}, "http://c:4318/v1/traces", "v1/metrics"),
        ({f"{BASE}ENDPOINT": "https://c/otlp/"}, {}, "https://c/otlp/v1/traces", "v1/metrics"),
        ({f"{BASE}TRACES_ENDPOINT": "http://c/as/is"}, {}, "http://c/as/is", None),
        (
            {f"{BASE}TRACES_ENDPOINT": "http://c/as/is"},
            {"endpoint": "http://d:1"},
            "http://d:1/v1/traces",
            "v1/metrics",
        ),
        ({}, {"endpoint": "http://d:1/v1/traces"}, "http://d:1/v1/traces", "v1/metrics"),
        ({}, {"endpoint": "http://d/?token=x"}, "http://d/v1/traces?token=x", "token=x"),
        ({}, {"endpoint": "d:4317", "protocol": "grpc"}, "http://d:4317", "http://d:4317"),
    ],
)
def test_each_signal_has_its_address(
    env: dict[str, str], arguments: dict[str, Any], traces: str | None, metrics: str | None
) -> None:
    endpoints = read_settings(env, **arguments).endpoints
    assert endpoints.get(Signal.TRACES) == traces
    if metrics is None:
        assert Signal.METRICS not in endpoints
    else:
        assert endpoints[Signal.METRICS].endswith(metrics)


@pytest.mark.parametrize(
    "env",
    [
        {f"{BASE}PROTOCOL": "thrift"},
        {f"{BASE}HEADERS": "nonsense"},
        {f"{BASE}TIMEOUT": "-1"},
        {f"{BASE}TIMEOUT": "soon"},
        {f"{BASE}COMPRESSION": "lzma"},
        {f"{BASE}ENDPOINT": "collector"},
        {f"{BASE}ENDPOINT": "ftp://collector"},
        {f"{BASE}ENDPOINT": "http://c:99999"},
        {"OTEL_TRACES_SAMPLER": "sometimes"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "0"},
    ],
)
def test_a_value_that_cannot_be_used_is_named(env: dict[str, str]) -> None:
    with pytest.raises(SettingError) as caught:
        read_settings(env)
    assert any(value in str(caught.value) for value in env.values())
