from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollscope.config import Settings, all_settings, resolve, unknown_variables
from rollscope.errors import RollscopeError, SettingError
from rollscope.instrument.sinks.memory import MemorySink


def test_nothing_given_means_defaults() -> None:
    settings = resolve({}, {})
    for name, setting in all_settings().items():
        assert getattr(settings, name) == setting.default
    assert settings.enabled
    assert (settings.run, settings.dir, settings.role, settings.rank) == (
        None,
        "runs",
        "main",
        None,
    )
    assert (settings.sink, settings.payloads, settings.tags) == ("file", False, {})


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("enabled", False, False),
        ("run", "gsm8k-grpo_7+lr=1e-5@a.b", "gsm8k-grpo_7+lr=1e-5@a.b"),
        ("dir", Path("/tmp/runs"), "/tmp/runs"),
        ("role", "rollout", "rollout"),
        ("rank", 0, 0),
        ("tags", {"lr": 1e-5}, {"lr": "1e-05"}),
        ("sink", "ray", "ray"),
        ("sink", "http://head", "http://head"),
        ("sink", "https://[::1]:7077/a/b/?token=x%2Bz", "https://[::1]:7077/a/b/?token=x%2Bz"),
        ("token", "a-token", "a-token"),
        ("ca_file", Path("/etc/ca.pem"), "/etc/ca.pem"),
        ("spool_dir", "spools", "spools"),
        ("spool_mb", 1, 1.0),
        ("drain_s", 1, 1.0),
        ("heartbeat_s", 0.1, 0.1),
        ("buffer_mb", 1, 1.0),
        ("attr_max_bytes", 64, 64),
        ("payloads", True, True),
        ("payload_max_bytes", 1024, 1024),
        ("stack_after_s", 0, 0.0),
        ("sigterm", False, False),
    ],
)
def test_an_argument_is_taken(name: str, given: object, value: object) -> None:
    assert getattr(resolve({name: given}, {}), name) == value


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("ROLLSCOPE_RUN", "a", "run", "a"),
        ("ROLLSCOPE_DIR", "/tmp/x", "dir", "/tmp/x"),
        ("ROLLSCOPE_ROLE", "reward", "role", "reward"),
        ("ROLLSCOPE_RANK", "7", "rank", 7),
        ("ROLLSCOPE_TAGS", "a=1, b=two=2,", "tags", {"a": "1", "b": "two=2"}),
        ("ROLLSCOPE_SINK", "none", "sink", "none"),
        ("ROLLSCOPE_SINK", "http://head:7077", "sink", "http://head:7077"),
        ("ROLLSCOPE_TOKEN", "abc", "token", "abc"),
        ("ROLLSCOPE_SPOOL_DIR", "/var/spool/x", "spool_dir", "/var/spool/x"),
        ("ROLLSCOPE_SPOOL_MB", "64", "spool_mb", 64.0),
        ("ROLLSCOPE_DRAIN_S", "0.5", "drain_s", 0.5),
        ("ROLLSCOPE_HEARTBEAT_S", "2", "heartbeat_s", 2.0),
        ("ROLLSCOPE_BUFFER_MB", "128", "buffer_mb", 128.0),
        ("ROLLSCOPE_ATTR_MAX_BYTES", "100", "attr_max_bytes", 100),
        ("ROLLSCOPE_PAYLOADS", "Yes", "payloads", True),
        ("ROLLSCOPE_PAYLOAD_MAX_BYTES", "100", "payload_max_bytes", 100),
        ("ROLLSCOPE_STACK_AFTER_S", "30", "stack_after_s", 30.0),
        ("ROLLSCOPE_SIGTERM", "off", "sigterm", False),
    ],
)
def test_a_variable_is_taken(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(resolve({}, {variable: text}), name) == value


def test_every_setting_has_a_variable_that_is_named_after_it() -> None:
    for name, setting in all_settings().items():
        expected = "ROLLSCOPE" if name == "enabled" else f"ROLLSCOPE_{name.upper()}"
        assert setting.variable == expected
        assert setting.name == name


def test_every_setting_says_what_it_means_and_what_is_allowed() -> None:
    for setting in all_settings().values():
        assert setting.doc.endswith((".", "…"))
        assert setting.allowed
        if setting.default is not None:
            assert setting.parse(setting.default) == setting.default


def test_an_argument_wins_over_a_variable() -> None:
    environ = {"ROLLSCOPE_ROLE": "reward", "ROLLSCOPE_RANK": "7"}
    settings = resolve({"role": "trainer", "rank": None}, environ)
    assert (settings.role, settings.rank) == ("trainer", 7)


def test_a_variable_that_an_argument_overrides_need_not_be_valid() -> None:
    assert resolve({"rank": 3}, {"ROLLSCOPE_RANK": "none of it"}).rank == 3


def test_an_empty_variable_counts_as_not_set() -> None:
    environ = {setting.variable: "" for setting in all_settings().values()}
    assert resolve({}, environ).values == {}


@pytest.mark.parametrize("off", ["0", "off", "OFF", "false", "no", " off\n"])
def test_the_variable_that_turns_everything_off_wins_over_the_argument(off: str) -> None:
    assert not resolve({"enabled": True}, {"ROLLSCOPE": off}).enabled
    assert not resolve({}, {"ROLLSCOPE": off}).enabled


@pytest.mark.parametrize("on", ["1", "on", "TRUE", "yes"])
def test_the_variable_turns_nothing_on_that_the_program_turned_off(on: str) -> None:
    assert resolve({}, {"ROLLSCOPE": on}).enabled
    assert not resolve({"enabled": False}, {"ROLLSCOPE": on}).enabled


BAD: list[tuple[str, Any]] = [
    ("enabled", "perhaps"),
    ("enabled", 2),
    ("run", ""),
    ("run", "a/b"),
    ("run", "../up"),
    ("run", ".hidden"),
    ("run", "-flag"),
    ("run", "a b"),
    ("run", "a\n"),
    ("run", "a\0"),
    ("run", "ä"),
    ("run", "x" * 129),
    ("run", 7),
    ("dir", "  "),
    ("dir", 7),
    ("dir", b"runs"),
    ("role", 1),
    ("rank", -1),
    ("rank", 1.5),
    ("rank", 1.0),
    ("rank", True),
    ("rank", "first"),
    ("tags", "no equals sign"),
    ("tags", "=value"),
    ("sink", "http"),
    ("sink", "http://"),
    ("sink", "head:7077"),
    ("sink", "ftp://head"),
    ("sink", "http://head:0"),
    ("sink", "http://head:65536"),
    ("sink", "http://head\r\nHost: x"),
    ("sink", "http://user@head"),
    ("sink", "http://head/?other=1"),
    ("sink", object()),
    ("spool_mb", 0),
    ("spool_dir", ""),
    ("sink", 7),
    ("drain_s", 0),
    ("drain_s", 61),
    ("drain_s", "nan"),
    ("drain_s", float("inf")),
    ("drain_s", True),
    ("drain_s", "fast"),
    ("heartbeat_s", 0.05),
    ("buffer_mb", 0.5),
    ("attr_max_bytes", 63),
    ("attr_max_bytes", 64.0),
    ("payload_max_bytes", "1 MB"),
    ("stack_after_s", -1),
    ("sigterm", "sometimes"),
]


@pytest.mark.parametrize(("name", "value"), [bad for bad in BAD if bad[1] != ""])
def test_a_bad_argument_is_named_with_its_value_and_what_is_allowed(name: str, value: Any) -> None:
    with pytest.raises(SettingError) as told:
        resolve({name: value}, {})
    assert str(told.value) == (
        f"setting {name!r} is {value!r}; allowed: {all_settings()[name].allowed}"
    )


@pytest.mark.parametrize(("name", "value"), [bad for bad in BAD if isinstance(bad[1], str)])
def test_a_bad_variable_is_named_with_its_value_and_what_is_allowed(name: str, value: str) -> None:
    setting = all_settings()[name]
    if value == "":
        assert resolve({}, {setting.variable: value}).values == {}
        return
    with pytest.raises(SettingError) as told:
        resolve({}, {setting.variable: value})
    assert str(told.value) == f"{setting.variable} is {value!r}; allowed: {setting.allowed}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("token", "geh eim"), ("token", "geheim\n"), ("sink", "http://head:x?token=geheim")],
)
def test_no_message_repeats_a_token(name: str, value: str) -> None:
    for given, environ in (({name: value}, {}), ({}, {f"ROLLSCOPE_{name.upper()}": value})):
        with pytest.raises(SettingError) as told:
            resolve(given, environ)
        assert "geh" not in str(told.value)
        assert "…" in str(told.value)


@pytest.mark.parametrize("name", ["attr_max_bytes", "payload_max_bytes"])
def test_a_limit_that_could_not_fit_into_a_frame_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match=name):
        resolve({name: 2**30}, {})


def test_a_misspelt_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SettingError, match=r"unknown setting 'drain'; did you mean 'drain_s'\?"):
        resolve({"drain": 1}, {})


def test_a_setting_like_no_other_is_refused_with_all_names() -> None:
    with pytest.raises(SettingError) as told:
        resolve({"zzz": 1}, {})
    assert all(name in str(told.value) for name in all_settings())


def test_a_setting_error_is_a_value_error_and_one_of_ours() -> None:
    assert issubclass(SettingError, ValueError)
    assert issubclass(SettingError, RollscopeError)


def test_a_run_name_may_have_128_characters() -> None:
    assert resolve({"run": "x" * 128}, {}).run == "x" * 128


def test_a_sink_is_any_object_with_the_three_methods() -> None:
    sink = MemorySink()
    assert resolve({"sink": sink}, {}).sink is sink


def test_a_setting_read_from_the_class_is_the_setting_itself() -> None:
    assert Settings.drain_s.default == 0.2
    assert Settings(drain_s=3.0).drain_s == 3.0


def test_a_misspelt_variable_is_found_with_the_nearest_name() -> None:
    environ = {"ROLLSCOPE_DRAIN": "1", "ROLLSCOPE_RUN": "x", "ROLLSCOPE_RAISE": "1", "HOME": "/"}
    assert unknown_variables(environ) == {"ROLLSCOPE_DRAIN": "did you mean 'ROLLSCOPE_DRAIN_S'?"}
