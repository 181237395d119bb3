"""`python -m rollscope.integrations.rl_insight server …`: RL-Insight's commands, on our server.

Each becomes a `rollscope` command in a process of its own, so this needs nothing of the command
line but its name.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rollscope.integrations.rl_insight.configuring import SERVER_URL

__all__ = ["main"]

_WRONG: Final = 2
_OPTIONS: Final = {
    "server.host": "--host",
    "server.port": "--port",
    "prometheus.prometheus_port": "--prometheus-port",
    "prometheus.retention": "--retention",
    "tempo.port": "--tempo-port",
    "grafana.port": "--grafana-port",
    "runs": "--dir",
    "with": "--with",
}
"""What a configuration file may say, and the option that it becomes; the rest keeps its default."""

Run = Callable[[Sequence[str]], int]


class _Wrong(Exception):
    """A file cannot be used; the text says why."""


def main(argv: Sequence[str] | None = None, run: Run | None = None) -> int:
    """Run a command and give its exit code.

    Args:
        argv: The words; those of this process if not given.
        run: Runs `rollscope` with words; for tests.
    """
    args = _parser().parse_args(argv)
    try:
        code: int = args.act(args, run or _rollscope)
    except _Wrong as error:
        print(f"rl_insight: {error}", file=sys.stderr)  # noqa: T201  (a command speaks so)
        return _WRONG
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m rollscope.integrations.rl_insight")
    parts = parser.add_subparsers(metavar="COMMAND", required=True)
    server = parts.add_parser("server", help="run our server as RL-Insight's is run")
    verbs = server.add_subparsers(metavar="ACTION", required=True)
    start = verbs.add_parser("start", help="start the server")
    start.add_argument("--config", type=Path, metavar="FILE", help="what differs from the defaults")
    start.add_argument("--auto-port", action="store_true", help="always so: a taken port is left")
    start.add_argument("--log-dir", metavar="DIR", help="state and logs go below DIR/server")
    start.add_argument("--extra-dashboard-dir", metavar="DIR", help="more dashboards for Grafana")
    start.add_argument("--with", dest="wanted", metavar="NAMES", help="as rollscope server start")
    start.add_argument("--dir", metavar="RUNS", help="where runs are")
    how = start.add_mutually_exclusive_group()
    how.add_argument("--detach", action="store_true", help="return when it is ready")
    how.add_argument("--attach-logs", action="store_true", help="stay; the table names the logs")
    start.set_defaults(act=_start)
    stop = verbs.add_parser("stop", help="end it")
    stop.add_argument("--log-dir", metavar="DIR", help="as it was started with")
    stop.set_defaults(act=_stop)
    install = verbs.add_parser("install", help="nothing needs to be installed")
    install.add_argument("--install-dir")
    install.add_argument("--force", action="store_true")
    install.add_argument("--local-archive")
    install.set_defaults(act=_install)
    targets = verbs.add_parser("targets", help="name targets").add_subparsers(required=True)
    add = targets.add_parser("add", help="have targets asked for metrics")
    add.add_argument("file", type=Path, help="jobs: [{job_name, targets, labels}]")
    add.add_argument("--server", metavar="URL", help=f"which server (default: {SERVER_URL})")
    add.set_defaults(act=_add_targets)
    return parser


def _start(args: Namespace, run: Run) -> int:
    words = ["server", "start"]
    if args.config is not None:
        words += _options(_read(args.config))
    given = {
        "--state-dir": args.log_dir,
        "--dashboards": args.extra_dashboard_dir,
        "--with": args.wanted,
        "--dir": args.dir,
    }
    for option, value in given.items():
        words += [] if value is None else [option, value]
    return run([*words, "--detach"] if args.detach else words)


def _stop(args: Namespace, run: Run) -> int:
    return run(["server", "stop", *([] if args.log_dir is None else ["--state-dir", args.log_dir])])


def _install(args: Namespace, run: Run) -> int:
    print("Nothing has to be installed: programs are used where they are, and never downloaded.")  # noqa: T201
    return 0


def _add_targets(args: Namespace, run: Run) -> int:
    jobs = _read(args.file).get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise _Wrong(f"{args.file} has to hold jobs, each with job_name, targets and labels")
    commands = [_job_words(job, args.file) for job in jobs]
    server = args.server or os.environ.get(SERVER_URL)
    if server and "://" not in server:
        server = f"http://{server}"
    codes = [run([*words, *(["--server", server] if server else [])]) for words in commands]
    return max(codes)


def _job_words(job: object, file: Path) -> list[str]:
    if not isinstance(job, Mapping):
        raise _Wrong(f"{file}: a job has job_name, targets and labels, not {job!r}")
    targets, labels = job.get("targets"), job.get("labels") or {}
    is_list = isinstance(targets, list) and bool(targets)
    if not is_list or not all(isinstance(one, str) for one in targets or ()):
        raise _Wrong(f"{file}: the targets of a job are a list of HOST:PORT")
    if not isinstance(labels, Mapping):
        raise _Wrong(f"{file}: the labels of a job are names and values")
    words = ["targets", "add", *(targets or ())]
    name = job.get("job_name") or "trainer_metrics"
    for key, value in {**labels, "rl_insight_job": name}.items():
        words += ["--label", f"{key}={value}"]
    return words


def _options(config: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for path, option in _OPTIONS.items():
        at: Any = config
        for name in path.split("."):
            at = at.get(name) if isinstance(at, Mapping) else None
        if at is not None:
            words += [option, ",".join(map(str, at)) if isinstance(at, list) else str(at)]
    return words


def _read(path: Path) -> Mapping[str, Any]:
    """Read a file of YAML; JSON is read without PyYAML too."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise _Wrong(f"{path} cannot be read: {error}") from None
    try:
        found = json.loads(text)
    except ValueError:
        found = _read_yaml(path, text)
    if not isinstance(found, Mapping):
        raise _Wrong(f"{path} has to hold names and values")
    return found


def _read_yaml(path: Path, text: str) -> object:
    try:
        import yaml
    except ImportError:
        raise _Wrong(f"{path} is no JSON; for YAML: pip install pyyaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _Wrong(f"{path} is no YAML: {error}") from None


def _rollscope(words: Sequence[str]) -> int:
    """Run a command; Ctrl+C goes to both, and it says how it ended."""
    process = subprocess.Popen([sys.executable, "-m", "rollscope", *words])  # noqa: S603
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
