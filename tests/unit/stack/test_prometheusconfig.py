from __future__ import annotations

import pytest
import yaml

from rollscope.stack.prometheusconfig import has_job, targets_name, with_job
from rollscope.stack.yamledges import UnsafeEdit

CONFIG = """\
# Ours.
global:
  scrape_interval: 15s
scrape_configs:
  # The first one.
  - job_name: 'node'
    static_configs:
      - targets: ["h:9100"]
rule_files: []
"""


def test_a_job_stands_first_with_a_word_on_who_keeps_it() -> None:
    assert with_job(CONFIG, "vllm") == CONFIG.replace(
        "scrape_configs:\n",
        "scrape_configs:\n"
        "  # Added by Rollscope, which keeps the targets in that file.\n"
        '  - job_name: "vllm"\n'
        "    file_sd_configs:\n"
        '      - files: ["rollscope-targets/vllm.json"]\n',
    )


def test_a_configuration_without_jobs_gets_a_list_of_them_at_its_end() -> None:
    text = with_job("global:\n  scrape_interval: 15s", "vllm")

    assert text.startswith("global:\n  scrape_interval: 15s\nscrape_configs:\n# Added")
    assert yaml.safe_load(with_job("", "vllm"))["scrape_configs"][0]["job_name"] == "vllm"


def test_a_job_is_known_again_also_when_somebody_has_renamed_it() -> None:
    text = with_job(CONFIG, "vllm")

    assert not has_job(CONFIG, "vllm")
    assert has_job(text, "vllm")
    assert has_job(text.replace('"vllm"\n', "engine\n"), "vllm")
    assert not has_job(CONFIG + "# rollscope-targets/vllm.json\n", "vllm")


@pytest.mark.parametrize("written", ["node", "'node'", '"node"', "node # ours"])
def test_a_job_of_somebody_else_with_that_name_is_left_alone(written: str) -> None:
    with pytest.raises(UnsafeEdit, match="choose another job_name"):
        has_job(CONFIG.replace("'node'", written), "node")
    assert not has_job(CONFIG.replace("  - job_name: 'node'", "  - x: job_names"), "node")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("scrape_configs: []\n", "a list with each job on lines of its own"),
        ("scrape_configs: [{job_name: a}]\n", "a list with each job"),
        ("scrape_configs:\n  job_name: a\n", "a list with each job"),
        ("scrape_configs:\nscrape_configs:\n", "twice"),
        ('{"scrape_configs": []}', "stands where a key is expected"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("a: 1\n...\n", "line 2"),
        ("  a: 1\n", "it is indented"),
        ("a:\n\tb: 1\n", "a tab"),
        ("a: [1,\n2]\n", "goes on at the left edge"),
        ("a: 'x\n  y\n", "not closed"),
        ("a: |2\n    x\n", "not understood"),
        ("a:\n  |\n  x\n", "a line of its own"),
        ("- a\n", "a list stands"),
        ("a: \u2028\n", "odd character"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnsafeEdit, match=why):
        with_job(text, "vllm")


def test_names_of_jobs_lead_to_files_of_their_own_and_nowhere_else() -> None:
    names = ["vllm", "../../etc/x", "a b", "a_b", "a/b", ".", "..", ".lock", "é" * 200, "x" * 200]
    files = [targets_name(name) for name in names]

    assert files[0] == "rollscope-targets/vllm.json"
    assert len(set(files)) == len(names)
    assert all(file.count("/") == 1 and "/." not in file and len(file) < 120 for file in files)
