"""Adding a job to the text of a Prometheus configuration, and nothing else to it.

The job only names a file; which targets there are stands in that file, which Prometheus reads again
by itself. So a configuration is touched once, by inserting lines: comments, order, quoting and line
ends of all the rest stay as they are.
"""

import hashlib
import json
import re
from typing import Final

from rollscope.stack.yamledges import Edge, Edges, UnsafeEdit, read_edges

__all__ = ["TARGETS_DIR", "has_job", "targets_name", "with_job"]

TARGETS_DIR: Final = "rollscope-targets"
"""Beside the configuration."""
_JOBS: Final = "scrape_configs"
_NO_LIST: Final = (
    f"{_JOBS} has to be a list with each job on lines of its own; write it so, or leave it out"
)
_JOB_NAME: Final = re.compile(
    r"""job_name["']?\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s,}#][^,}#\r\n]*))"""
)
_ITEM: Final = re.compile(r"( *)-(?: |$)")
_PLAIN: Final = re.compile(r"[\w.-]{1,80}", re.ASCII)


def targets_name(job_name: str) -> str:
    """Name the file of a job's targets, relative to the configuration."""
    if _PLAIN.fullmatch(job_name) and not job_name.startswith("."):
        return f"{TARGETS_DIR}/{job_name}.json"
    told_apart = hashlib.sha256(job_name.encode()).hexdigest()[:8]
    return f"{TARGETS_DIR}/{re.sub(r'[^A-Za-z0-9_-]', '_', job_name)[:60]}-{told_apart}.json"


def has_job(text: str, job_name: str) -> bool:
    """Say whether a configuration has the job, as `with_job` writes it.

    Raises:
        UnsafeEdit: It cannot be told, or it has a job of that name with other targets.
    """
    edges = read_edges(text)
    lines = [line for line in _section(text, edges).splitlines() if not _is_comment(line)]
    if any(targets_name(job_name) in line for line in lines):
        return True
    if job_name in (name for line in lines for name in _job_names(line)):
        raise UnsafeEdit(
            f"it has a job {job_name!r} already, which does not read {targets_name(job_name)}; "
            "choose another job_name"
        )
    return False


def with_job(text: str, job_name: str) -> str:
    """Give the configuration with one more job.

    Raises:
        UnsafeEdit: That cannot be done safely; the message says why.
    """
    edges = read_edges(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    jobs = _jobs(edges)
    if jobs is None:
        return _with_section(text, edges, newline, _job_lines(job_name, ""))
    lines = _job_lines(job_name, _indent_of_items(text, jobs))
    has_break = text[jobs.start : jobs.end].endswith(("\n", "\r"))
    before = text[: jobs.end] + ("" if has_break else newline)
    return before + newline.join(lines) + newline + text[jobs.end :]


def _with_section(text: str, edges: Edges, newline: str, lines: list[str]) -> str:
    section = newline.join([f"{_JOBS}:", *lines]) + newline
    has_break = not text or text.endswith(("\n", "\r"))
    if edges.ends_in_text and not has_break:
        at = edges.keys[0].start
        return text[:at] + section + text[at:]
    return text + ("" if has_break else newline) + section


def _job_lines(job_name: str, indent: str) -> list[str]:
    # A text of JSON is one of YAML too.
    lines = (
        "# Added by Rollscope, which keeps the targets in that file.",
        f"- job_name: {json.dumps(job_name)}",
        "  file_sd_configs:",
        f"    - files: [{json.dumps(targets_name(job_name))}]",
    )
    return [indent + line for line in lines]


def _jobs(edges: Edges) -> Edge | None:
    found = [edge for edge in edges.keys if edge.key == _JOBS]
    if len(found) > 1:
        raise UnsafeEdit(f"it has {_JOBS} twice")
    if found and found[0].value:
        raise UnsafeEdit(_NO_LIST)
    return found[0] if found else None


def _indent_of_items(text: str, jobs: Edge) -> str:
    """Say how far the jobs are indented."""
    for line in re.split(r"[\r\n]+", text[jobs.end :]):
        if not line.strip() or _is_comment(line):
            continue
        if found := _ITEM.match(line):
            return found[1]
        if line[0] in " \t":
            raise UnsafeEdit(_NO_LIST)
        break
    return ""


def _section(text: str, edges: Edges) -> str:
    jobs = _jobs(edges)
    if jobs is None:
        return ""
    following = (edge.start for edge in edges.keys if edge.start > jobs.start)
    return text[jobs.end : next(following, len(text))]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _job_names(line: str) -> list[str]:
    names = []
    for doubled, single, plain in _JOB_NAME.findall(line):
        names.append(doubled or single.replace("''", "'") or plain.strip())
    return names
