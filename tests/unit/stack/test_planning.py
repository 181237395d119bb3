from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from rollscope.cli.main import make_parser
from rollscope.errors import CommandError
from rollscope.stack.members import Member
from rollscope.stack.options import (
    PORTS,
    StackOptions,
    page_address,
    reachable,
    read_wanted,
    retention_hours,
)
from rollscope.stack.planning import StackPlan, plan_stack
from rollscope.stack.statefile import StateDir
from tests.monitoring.prometheus import free_port

VERSIONS = {"prometheus": "2.42.0", "alertmanager": "0.25.0", "tempo": "2.6.1", "grafana": "11.3.0"}


def plan(folder: Path, *wanted: str, **more: Any) -> StackPlan:
    programs = {}
    for name in wanted:
        path = folder / f"fake-{name}"
        path.write_text(f"#!/bin/sh\necho {name}, version {VERSIONS[name]}\n")
        path.chmod(0o755)
        programs[name] = str(path)
    ports = {name: free_port() for name in ("rollscope", *wanted)}
    where = StateDir(folder / "server")
    given = {"ports": ports, "wanted": wanted, "programs": programs, **more}
    return plan_stack(StackOptions(runs=folder / "runs", where=where, **given), {})


def by_name(made: StackPlan) -> dict[str, Member]:
    return {each.name: each for each in made.members}


def test_members_are_started_in_an_order_in_which_each_finds_its_own(tmp_path: Path) -> None:
    made = plan(tmp_path, "grafana", "alertmanager", "prometheus", "tempo")
    assert [each.name for each in made.members] == [
        *("rollscope", "tempo", "forwarder", "prometheus", "alertmanager", "grafana")
    ]
    assert {each.version for each in made.members} > set(VERSIONS.values())


def test_our_own_members_are_told_only_what_their_commands_take(tmp_path: Path) -> None:
    members = by_name(plan(tmp_path, "tempo", "grafana"))
    for name in ("rollscope", "forwarder"):
        make_parser().parse_args(members[name].command[4:])
    page = members["rollscope"].command
    assert page[page.index("--grafana-url") + 1] + "/" == members["grafana"].address
    assert page[page.index("--tempo-url") + 1] + "/" == members["tempo"].address
    assert page[page.index("--token-file") + 1] == str(tmp_path / "server" / "token")


def test_what_else_is_said_reaches_our_server(tmp_path: Path) -> None:
    words = ("--otlp-port", "4318", "--allow-host", "head")
    command = plan(tmp_path, view_words=words).members[0].command
    assert command[-4:] == words
    told = make_parser().parse_args(["server", "start", "--detach", "--", *words])
    assert tuple(told.view_words) == words


def test_the_configuration_of_tempo_is_that_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "compactor:" in plan(tmp_path, "tempo").files["tempo/tempo.yaml"]
    monkeypatch.setitem(VERSIONS, "tempo", "3.0.1")
    assert "live_store:" in plan(tmp_path, "tempo").files["tempo/tempo.yaml"]


def test_only_the_page_may_listen_elsewhere(tmp_path: Path) -> None:
    made = plan(tmp_path, "prometheus", host="0.0.0.0")  # noqa: S104  (nothing is started)
    members = by_name(made)
    port = members["rollscope"].health.rpartition(":")[2]
    assert members["rollscope"].health == f"http://127.0.0.1:{port}"
    assert made.page == f"http://{socket.gethostname()}:{port.partition('/')[0]}/"
    assert any("--web.listen-address=127.0.0.1:" in word for word in members["prometheus"].command)
    assert made.page in made.files["prometheus/prometheus.yml"]


def test_without_a_token_prometheus_is_given_none(tmp_path: Path) -> None:
    made = plan(tmp_path, "prometheus", has_token=False)
    assert "--no-token" in made.members[0].command
    assert "credentials_file" not in made.files["prometheus/prometheus.yml"]
    assert made.token_file is None


def test_a_usual_port_that_is_taken_is_stepped_over_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setitem(PORTS, "rollscope", port)
        made = plan(tmp_path, ports={})
    (note,) = made.notes
    assert note.startswith(f"Port {port} is taken by ")
    assert made.page in (f"http://127.0.0.1:{number}/" for number in range(port + 1, port + 99))


def test_files_are_for_their_owner_and_a_password_is_drawn_once(tmp_path: Path) -> None:
    first = plan(tmp_path, "prometheus", "grafana")
    first.write_files()
    password = tmp_path / "server/grafana/password"
    drawn = password.read_text()
    plan(tmp_path, "prometheus", "grafana").write_files()
    assert password.read_text() == drawn
    assert password.stat().st_mode & 0o077 == 0
    assert (tmp_path / "server/prometheus/targets").is_dir()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"alertmanager_config": Path("/missing.yml")}, "there is no file /missing.yml"),
        ({"dashboards": Path("/missing")}, "there is no directory /missing"),
        ({"retention": "long"}, "'long' is no time"),
        ({"view_words": ("runs",)}, "name a directory of runs with --dir"),
        ({"view_words": ("--port=1",)}, "--port belongs before the --"),
        ({"view_words": ("--certfile", "x.pem")}, "without TLS on this machine"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    with pytest.raises(CommandError, match=told) as caught:
        plan(tmp_path, **more)
    assert caught.value.exit_code == 2


def test_a_configuration_of_ones_own_is_used_where_it_is(tmp_path: Path) -> None:
    own = tmp_path / "mine.yml"
    own.write_text("")
    made = plan(tmp_path, "alertmanager", alertmanager_config=own)
    assert f"--config.file={own}" in by_name(made)["alertmanager"].command


def test_names_of_programs_are_read_once_each_and_unknown_ones_refused() -> None:
    assert read_wanted(" grafana,prometheus,,grafana") == ("grafana", "prometheus")
    assert read_wanted("") == ()
    with pytest.raises(CommandError, match="'jaeger' is none of prometheus, alertmanager"):
        read_wanted("prometheus,jaeger")


def test_times_and_addresses_are_read_as_meant() -> None:
    assert [retention_hours(text) for text in ("12h", "15d", "2w", "1y")] == [12, 360, 336, 8760]
    assert page_address("::1", 7077) == "http://[::1]:7077/"
    assert reachable("::", 7077) == "[::1]:7077"
    assert reachable("10.0.0.7", 7077) == "10.0.0.7:7077"
