from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.collect.engineseries import ENGINE_SERIES, SeriesChoice, engine_name
from rollscope.collect.exposition import ExpositionReader
from rollscope.collect.increments import MOST_METRICS, Increments
from rollscope.metrics.buckets import bucket_of
from rollscope.model.kinds import MetricType
from tests.integration.exposing import sglang_text, vllm_text

if TYPE_CHECKING:
    from rollscope.model.batch import Metric


class Target:
    """A target that shows one text after another."""

    def __init__(self, *also: str) -> None:
        self.choice = SeriesChoice(also)
        self.increments = Increments(self.choice, lambda _: {"replica": "r0"})
        self.left_out = 0

    def show(self, text: str, *, is_written: bool = True) -> dict[str, Metric]:
        reader = ExpositionReader(self.choice.wants)
        reader.feed(text.encode())
        reading = self.increments.read(reader.close())
        if is_written:
            self.increments.accept(reading)
        self.left_out = reading.left_out
        return {metric.name: metric for metric in reading.metrics}


def test_every_spelling_of_an_engines_series_gets_its_own_name() -> None:
    for own in ENGINE_SERIES:
        plain = own.replace(":", "_")
        for spelled in (own, plain, f"ray_{plain}", f"ray_{own}"):
            part = "_bucket" if ENGINE_SERIES[own] is MetricType.HISTOGRAM else ""
            chosen = engine_name(f"{spelled}{part}")
            assert chosen is not None, spelled
            assert (chosen.name, chosen.part) == (own, part)
    assert engine_name("ray_vllm_generation_tokens") == engine_name("vllm:generation_tokens_total")
    assert engine_name("vllm:cache_config_info") is None
    assert engine_name("vllm:time_to_first_token_seconds_created") is None


def test_gauges_come_at_once_and_counts_from_the_second_answer_on() -> None:
    target = Target()

    first, second = target.show(vllm_text(1_000)), target.show(vllm_text(1_600, kv=0.5))

    assert set(first) == {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
    }
    assert second["vllm:kv_cache_usage_perc"].value == 0.5
    assert second["vllm:generation_tokens_total"].value == 600
    assert second["vllm:generation_tokens_total"].type is MetricType.COUNTER
    assert second["vllm:prefix_cache_hits_total"].labels == {
        "engine": "0",
        "model_name": "Qwen/Qwen3-8B",
        "replica": "r0",
    }


def test_what_did_not_change_adds_nothing() -> None:
    target = Target()
    target.show(vllm_text())

    assert all(metric.type is MetricType.GAUGE for metric in target.show(vllm_text()).values())


def test_a_count_that_goes_down_began_anew() -> None:
    target = Target()
    target.show(vllm_text(9_000, seen=50))

    metrics = target.show(vllm_text(400, seen=3))

    assert metrics["vllm:generation_tokens_total"].value == 400
    assert metrics["vllm:time_to_first_token_seconds"].count == 6


def test_what_could_not_be_written_is_added_the_next_time() -> None:
    target = Target()
    target.show(vllm_text(1_000))
    target.show(vllm_text(1_500), is_written=False)

    assert target.show(vllm_text(1_700))["vllm:generation_tokens_total"].value == 700


def test_a_histogram_adds_what_came_between_its_bounds() -> None:
    target = Target()
    target.show(vllm_text(seen=4))

    histogram = target.show(vllm_text(seen=10))["vllm:time_to_first_token_seconds"]

    assert histogram.type is MetricType.HISTOGRAM
    assert (histogram.count, round(histogram.value, 6)) == (12, 2.4)
    assert histogram.buckets == {bucket_of(0.05): 6, bucket_of((0.1 * 0.5) ** 0.5): 6}
    assert "le" not in histogram.labels


def test_sglang_reports_gauges_only() -> None:
    metrics = Target().show(sglang_text())

    assert metrics["sglang:gen_throughput"].value == 1800
    assert {metric.type for metric in metrics.values()} == {MetricType.GAUGE}


def test_other_series_are_kept_when_asked_for_and_by_what_they_are_declared_as() -> None:
    text = """\
# TYPE ray_node_mem gauge
ray_node_mem{host="a"} 4
# TYPE ray_node_disk counter
ray_node_disk_total 7
# TYPE ray_node_wait summary
ray_node_wait{quantile="0.5"} 0.1
ray_node_wait_sum 3
# TYPE ray_node_size histogram
ray_node_size_bucket{le="1"} 1
ray_node_size_bucket{le="+Inf"} 2
ray_node_size_count 2
ray_node_size_sum 9
ray_node_odd NaN
"""
    target = Target("ray_node_*")
    first = target.show(text)
    second = target.show(text.replace("disk_total 7", "disk_total 9").replace("_sum 3", "_sum 5"))

    assert {name: first[name].value for name in first} == {"ray_node_mem": 4, "ray_node_wait": 0.1}
    assert second["ray_node_disk_total"].value == 2
    assert second["ray_node_wait_sum"].value == 2
    assert Target().show(text) == {}


def test_labels_are_cut_and_series_are_bounded() -> None:
    target = Target("many")
    target.show("".join(f'many{{n="{number}"}} 1\n' for number in range(MOST_METRICS + 5)))
    left_out = target.left_out
    (long,) = target.show(f'many{{a="{"x" * 5_000}"}} 1').values()

    assert left_out == 5
    assert len(long.labels["a"]) == 200
