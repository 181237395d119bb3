from __future__ import annotations

from rollscope.integrations.rl_insight.exposed import Registry
from rollscope.integrations.rl_insight.state import COUNT, GAUGE, OBSERVE
from rollscope.metrics.exposition import TextFormat, write_text


def lines(registry: Registry) -> list[str]:
    text = write_text(registry.expose(), TextFormat.PROMETHEUS).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_names_get_the_namespace_and_counters_one_total() -> None:
    registry = Registry("ns", {})
    registry.take([(COUNT, "steps", 1, {}, ""), (COUNT, "runs_total", 2, {}, "All of them.")])
    registry.take([(COUNT, "steps", 1.5, {}, "")])
    assert lines(registry) == ["ns_steps_total 2.5", "ns_runs_total 2.0"]
    text = write_text(registry.expose(), TextFormat.PROMETHEUS).decode()
    assert "# HELP ns_steps_total Counter steps\n" in text
    assert "# HELP ns_runs_total All of them.\n" in text


def test_other_labels_other_kinds_and_bad_characters_lose_nothing() -> None:
    registry = Registry("ns", {})
    registry.take(
        [
            (GAUGE, "critic/reward", 1.0, {"a": 1}, ""),
            (GAUGE, "critic/reward", 2.0, {"b/c": "x", "b_c": "y"}, ""),
            (GAUGE, "critic_reward", 3.0, {}, ""),
            (OBSERVE, "critic/reward", 42.0, {}, ""),
        ]
    )
    shown = lines(registry)
    assert shown[:2] == [
        'ns_critic_reward{a="1",b_c="",b_c_=""} 1.0',
        'ns_critic_reward{a="",b_c="x",b_c_="y"} 2.0',
    ]
    assert "ns_critic_reward_gauge 3.0" in shown
    assert 'ns_critic_reward_histogram_bucket{le="60.0"} 1' in shown
    assert 'ns_critic_reward_histogram_bucket{le="30.0"} 0' in shown


def test_bounds_may_be_given_by_name() -> None:
    registry = Registry("", {"x": (1.0, 2.0)})
    registry.take([(OBSERVE, "x", value, {}, "") for value in (1.0, 1.5, 9.0)])
    assert lines(registry) == [
        'x_bucket{le="1.0"} 1',
        'x_bucket{le="2.0"} 2',
        'x_bucket{le="+Inf"} 3',
        "x_count 3",
        "x_sum 11.5",
    ]


def test_what_is_refused_is_counted_by_reason() -> None:
    registry = Registry("ns", {})
    registry.take([(COUNT, "c", -1, {}, ""), (GAUGE, "g", object(), {}, "")])
    registry.take([(GAUGE, "many", n, {"id": n}, "") for n in range(2_010)])
    assert registry.refused == {"amount": 1, "no_number": 1, "series": 10}
    assert 'ns_refused_calls_total{reason="series"} 10.0' in lines(registry)
