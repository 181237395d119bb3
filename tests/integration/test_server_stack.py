"""`rollscope server` with real processes: real Prometheus and Alertmanager, and stand-ins."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

import pytest

from rollscope.stack.looking import MemberView, look_at
from rollscope.stack.processes import identify
from rollscope.stack.statefile import MemberState, StackState, StateDir
from rollscope.stack.stopping import stop_stack
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.standin_programs import write_standins
from tests.monitoring.prometheus import free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S = 90.0


class Desk:
    """A state directory, and the commands that a user gives about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = StateDir(folder / "state" / "server")
        self.ports = {name: str(free_port()) for name in ("page", "prometheus", "alertmanager")}

    def command(self, *words: str) -> list[str]:
        state = ["--state-dir", str(self.folder / "state")]
        return [sys.executable, "-m", "rollscope", "server", *words, *state]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            cwd=self.folder,
        )

    def start_words(self, *words: str) -> list[str]:
        runs = ["--dir", str(self.folder / "runs"), "--port", self.ports["page"]]
        return ["start", *runs, "--prometheus-port", self.ports["prometheus"], *words]

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(*self.start_words("--detach", *words))

    def members(self) -> dict[str, MemberView]:
        return {each.name: each for each in look_at(self.where).members}

    def left_running(self) -> list[str]:
        """Give the command lines of processes that have to do with this state directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(self.where.path) in command or f"{self.folder}/state" in command:
                found.append(command.replace("\0", " "))
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    stop_stack(desk.where)
    assert desk.left_running() == []


def get(address: str) -> Any:
    with build_opener(ProxyHandler({})).open(address, timeout=10) as answer:
        return json.load(answer)


def test_a_whole_stack_starts_sees_itself_heals_and_stops(desk: Desk) -> None:
    generate_run(desk.folder / "runs" / "small", RunShape.sized(200))
    ports = [f"--{name}-port={free_port()}" for name in ("tempo", "grafana")]
    everything = ["--with", "prometheus,alertmanager,tempo,grafana"]
    others = [*write_standins(desk.folder), "--alertmanager-port", desk.ports["alertmanager"]]
    started = desk.start(*everything, *ports, *others)
    assert started.returncode == 0, started.stdout + started.stderr

    members = desk.members()
    names = ["rollscope", "tempo", "forwarder", "prometheus", "alertmanager", "grafana"]
    assert [(name, each.state) for name, each in members.items()] == [
        (name, "running") for name in names
    ]
    shown = json.loads(desk.run("status", "--json").stdout)
    assert [each["pid"] for each in shown["members"]] == [each.pid for each in members.values()]
    token = desk.where.token_file.read_text().strip()
    assert f"http://127.0.0.1:{desk.ports['page']}/?token={token}" in started.stdout
    assert {Path(each.log) for each in members.values()} == set(map(desk.where.log_of, names))
    assert f"\nLogs are in {desk.where.log_of('tempo').parent}.\n" in started.stdout

    prometheus = members["prometheus"].address + "api/v1/"
    wait_until(lambda: "rollscope" in _healthy_jobs(prometheus))
    config = get(prometheus + "status/config")["data"]["yaml"]
    assert f"rollscope_url: http://127.0.0.1:{desk.ports['page']}/" in config
    assert get(prometheus + "rules")["data"]["groups"]
    wait_until(lambda: get(prometheus + "alertmanagers")["data"]["activeAlertmanagers"])
    assert get(prometheus + "status/flags")["data"]["web.enable-lifecycle"] == "true"
    tempo_log = Path(members["tempo"].log)
    wait_until(lambda: "bytes of /v1/traces" in tempo_log.read_text())

    again = desk.run(*desk.start_words("--with", "prometheus"))
    assert again.returncode == 0
    assert again.stdout.startswith("It runs already:")
    assert str(members["prometheus"].pid) in again.stdout

    killed = members["alertmanager"].pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    healed = wait_until(lambda: _new_number(desk, "alertmanager", killed))
    assert healed is not None
    assert healed.restarts == 1
    log = (desk.where.logs / "server.log").read_text()
    assert "alertmanager was killed by SIGKILL. It is started again in 1 s." in log
    assert desk.members()["prometheus"].pid == members["prometheus"].pid

    stopped = desk.run("stop")
    order = "grafana, alertmanager, prometheus, forwarder, tempo, rollscope"
    assert stopped.stdout == f"Stopped: {order}.\n"
    assert desk.left_running() == []
    assert desk.run("status").returncode == 3


def _healthy_jobs(prometheus: str) -> set[str]:
    targets = get(prometheus + "targets?state=active")["data"]["activeTargets"]
    return {each["labels"]["job"] for each in targets if each["health"] == "up"}


def _new_number(desk: Desk, name: str, before: int) -> MemberView | None:
    member = desk.members()[name]
    return member if member.state == "running" and member.pid not in (None, before) else None


def test_ctrl_c_ends_everything_with_the_code_of_other_commands(desk: Desk) -> None:
    command = desk.command(*desk.start_words("--with", "prometheus"))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=desk.folder
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Press Ctrl+C to stop." in line:
                break
        assert "prometheus  running" in said
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=_PATIENCE_S)[0]
        assert (process.returncode, rest) == (130, "Stopped: prometheus, rollscope.\n")
    assert desk.left_running() == []
    assert not desk.where.state_file.exists()


def test_the_server_alone_says_what_else_is_installed(desk: Desk) -> None:
    started = desk.start()
    assert started.returncode == 0, started.stdout + started.stderr
    assert list(desk.members()) == ["rollscope"]
    assert "Also installed here: prometheus, alertmanager;" in started.stdout
    first = desk.members()["rollscope"].pid
    state = desk.where.read()
    assert state is not None
    os.kill(state.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: desk.where.holder() is None)

    status = desk.run("status")
    assert status.returncode == 1
    assert "orphaned" in status.stdout
    # A new start ends what was left, or it would find its port taken.
    started = desk.start()
    assert started.returncode == 0, started.stdout + started.stderr
    assert "rollscope was left from an earlier start" in started.stdout
    assert desk.members()["rollscope"].pid != first

    state = desk.where.read()
    assert state is not None
    os.kill(state.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: desk.where.holder() is None)
    assert desk.run("stop").stdout == "Stopped: rollscope.\n"
    assert desk.left_running() == []


def test_a_port_that_was_asked_for_and_is_taken_is_refused_before_anything_runs(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = desk.run("start", "--port", str(port))
    assert refused.returncode == 2
    assert f"--port {port}: Rollscope cannot listen there" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert desk.left_running() == []


def test_a_program_that_is_missing_or_too_old_is_refused_before_anything_runs(desk: Desk) -> None:
    old = desk.folder / "old-prometheus"
    old.write_text("#!/bin/sh\necho prometheus, version 2.20.0\n")
    old.chmod(0o755)
    refused = desk.run("start", "--with", "prometheus", "--prometheus-bin", str(old))
    assert refused.returncode == 1
    assert "is Prometheus 2.20.0, and at least 2.37 is needed" in refused.stderr
    refused = desk.run("start", "--detach", "--with", "tempo")
    assert "Tempo was asked for and is not installed here" in refused.stderr
    assert not desk.where.state_file.exists()


def test_a_member_that_does_not_start_takes_the_others_with_it(desk: Desk) -> None:
    broken = desk.folder / "alertmanager.yml"
    broken.write_text("route: {receiver: nobody}\n")
    failed = desk.start("--with", "alertmanager", "--alertmanager-config", str(broken))
    assert failed.returncode == 1
    assert "alertmanager has ended with code 1 while it started." in failed.stderr
    assert "nobody" in failed.stderr, "the last lines of its log say why"
    assert desk.left_running() == []


def test_a_stale_state_file_never_costs_a_stranger_its_life(desk: Desk) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        now = identify(stranger.pid)
        assert now is not None
        reused = type(now)(now.pid, "1", now.boot, now.host, ("prometheus", "--config.file=x"))
        desk.where.prepare()
        member = MemberState(
            name="prometheus",
            state="running",
            address="",
            health="",
            version="2.42.0",
            log="",
            process=reused,
        )
        desk.where.write(StackState(supervisor=reused, page="", runs="", members=[member]))
        assert not look_at(desk.where).is_running
        assert desk.run("stop").stdout == f"Nothing is running in {desk.where.path}.\n"
        assert not desk.where.state_file.exists()
        assert stranger.poll() is None
        stranger.kill()


def test_ctrl_c_while_a_detached_start_waits_leaves_nothing_running(desk: Desk) -> None:
    slow = desk.folder / "slow-alertmanager"
    slow.write_text(
        '#!/bin/sh\ntest "$1" = --version && exec echo alertmanager, version 0.25.0\n'
        "exec sleep 600\n"
    )
    slow.chmod(0o755)
    words = ["--detach", "--with", "alertmanager", "--alertmanager-bin", str(slow)]
    command = desk.command(*desk.start_words(*words))
    with subprocess.Popen(command, cwd=desk.folder, stdout=subprocess.PIPE) as process:
        wait_until(lambda: "alertmanager" in desk.members() and desk.members()["alertmanager"].pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(_PATIENCE_S) == 130
    assert desk.left_running() == []


def test_of_two_starts_at_once_one_starts_and_both_are_content(desk: Desk) -> None:
    command = desk.command(*desk.start_words("--detach"))
    both = [
        subprocess.Popen(command, cwd=desk.folder, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=_PATIENCE_S)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert sum("rollscope server stop ends it." in text for text in said) == 1
    supervisors = [line for line in desk.left_running() if " server start " in line]
    assert len(supervisors) == 1
