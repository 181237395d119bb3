"""Starting a stack: here until a signal comes, or in a process of its own that stays."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, NoReturn

import msgspec

from rollscope.errors import CommandError, RollscopeError
from rollscope.stack.children import keep_one_old, last_lines
from rollscope.stack.interrupts import Interrupts
from rollscope.stack.options import StackOptions
from rollscope.stack.planning import plan_stack
from rollscope.stack.statefile import Lock, StateDir
from rollscope.stack.stopping import end_orphans
from rollscope.stack.supervisor import Interrupted, Supervisor

__all__ = ["AlreadyRunning", "run_stack", "start_detached"]

_INTERRUPTED: Final = 128
"""What shells add to the number of a signal to make an exit code of it."""


class AlreadyRunning(Exception):
    """Another process looks after the stack of this state directory."""


class _Report(msgspec.Struct):
    """What a process that stays tells the one that has started it."""

    kind: Literal["said", "ready", "running", "failed"]
    text: str = ""
    code: int = 0


def run_stack(
    options: StackOptions,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    when_ready: Callable[[], None],
) -> int:
    """Run a stack until a signal asks for its end; gives the exit code.

    Raises:
        AlreadyRunning: Another process does.
        CommandError: It cannot be started; nothing is left running.
    """
    options.where.prepare()
    with Interrupts() as interrupts:
        lock = Lock.take(options.where)
        if lock is None:
            raise AlreadyRunning
        try:
            return _run_locked(options, environ, say, when_ready, interrupts)
        finally:
            options.where.forget()
            lock.release()


def _run_locked(
    options: StackOptions,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    when_ready: Callable[[], None],
    interrupts: Interrupts,
) -> int:
    for name in end_orphans(options.where):
        say(f"{name} was left from an earlier start, whose supervisor is gone; it was ended.")
    plan = plan_stack(options, environ)
    for note in plan.notes:
        say(note)
    plan.write_files()
    supervisor = Supervisor(options.where, plan, say)
    try:
        supervisor.start(interrupts)
        when_ready()
        supervisor.watch(interrupts)
    except Interrupted:
        pass
    finally:
        ended = supervisor.stop(interrupts)
    with suppress(OSError):  # the terminal may be what has gone
        say(f"Stopped: {', '.join(ended)}.")
    number = interrupts.asked[0]
    return _INTERRUPTED + number if number == signal.SIGINT else 0


def start_detached(
    options: StackOptions, environ: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Start a stack in a process of its own; returns when everything is ready.

    Raises:
        AlreadyRunning: Another process runs it.
        CommandError: It cannot be started; nothing is left running.
    """
    options.where.prepare()
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _stay(options, environ, writing)
    os.close(writing)
    try:
        _relay(options.where, reading, say)
    except BaseException:
        # Ctrl+C, or an error that it has told of: it is on its way out, or is sent there.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise


def _relay(where: StateDir, reading: int, say: Callable[[str], None]) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            report = msgspec.json.decode(line, type=_Report)
            if report.kind == "said":
                say(report.text)
            elif report.kind == "ready":
                return
            elif report.kind == "running":
                raise AlreadyRunning
            else:
                raise CommandError(report.text, report.code)
    told = "\n".join(f"  {line}" for line in last_lines(where.log_of("server")))
    raise CommandError(f"the supervisor has ended while it started:\n{told}")


def _stay(options: StackOptions, environ: Mapping[str, str], writing: int) -> NoReturn:
    """Be the process that stays; never returns into what the caller was doing."""
    code = 1
    try:
        os.setsid()
        _redirect(options.where)
        code = _run_reporting(options, environ, writing)
    except BaseException:  # the last resort: this process must not go on as the caller
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(where: StateDir) -> None:
    """Let go of the terminal and of the directory; what is said from now on goes into a log."""
    log = where.log_of("server")
    keep_one_old(log)
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(nothing)
    os.close(file)
    os.chdir(where.path)


def _run_reporting(options: StackOptions, environ: Mapping[str, str], writing: int) -> int:
    is_heard = True

    def tell(report: _Report) -> None:
        nonlocal is_heard
        if is_heard:
            with suppress(BrokenPipeError):
                os.write(writing, msgspec.json.encode(report) + b"\n")
            if report.kind != "said":
                is_heard = False
                os.close(writing)

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        tell(_Report("said", text))

    try:
        return run_stack(options, environ, say, lambda: tell(_Report("ready")))
    except AlreadyRunning:
        tell(_Report("running"))
        return 0
    except (RollscopeError, OSError) as error:
        code = error.exit_code if isinstance(error, CommandError) else 1
        sys.stdout.write(f"{error}\n")
        tell(_Report("failed", str(error), code))
        return code
