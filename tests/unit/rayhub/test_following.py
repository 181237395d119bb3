"""What a followed function or class looks like to Ray, to its callers and to itself."""

from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import ray
from ray import cloudpickle

from rollscope.rayhub import follow, uninstall
from rollscope.rayhub.following import KEYWORD, accepts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

CARRIED = {"headers": {}, "settings": {"run": "r"}, "since_ns": 0, "follow_all": False}
"""Of a recording that is older than any, so that nothing is joined."""


@pytest.fixture(autouse=True)
def carry_nothing_after() -> Iterator[None]:
    yield
    uninstall()


def add(first: int, *, second: int = 1) -> int:
    return first + second


def count(most: int) -> Iterator[int]:
    yield from range(most)


async def double(number: int) -> int:
    return 2 * number


async def count_slowly(most: int) -> AsyncIterator[int]:
    for number in range(most):
        yield number


def take_anything(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    return args, kwargs


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize("function", [add, count, double, count_slowly, take_anything])
def test_a_followed_function_is_of_the_same_kind(function: Any) -> None:
    followed = follow(function)
    assert followed is not function
    for is_kind in (
        inspect.isgeneratorfunction,
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
    ):
        assert is_kind(followed) == is_kind(function)
    assert (followed.__name__, followed.__module__) == (function.__name__, function.__module__)
    assert (
        list(inspect.signature(followed).parameters)[:1]
        == list(inspect.signature(function).parameters)[:1]
    )
    assert accepts(inspect.signature(followed).parameters.values())
    assert not accepts(inspect.signature(function).parameters.values())


def test_the_function_never_sees_the_keyword() -> None:
    context: Any = {KEYWORD: CARRIED}
    assert follow(add)(1, second=2, **context) == 3
    assert follow(take_anything)(1, a=2, **context) == ((1,), {"a": 2})
    assert list(follow(count)(3, **context)) == [0, 1, 2]
    assert asyncio.run(follow(double)(4, **context)) == 8

    async def collect() -> list[int]:
        return [number async for number in follow(count_slowly)(3, **context)]

    assert asyncio.run(collect()) == [0, 1, 2]


def test_a_call_without_context_is_a_plain_call() -> None:
    assert follow(add)(1) == 2
    with pytest.raises(TypeError, match="third"):
        follow(add)(1, third=3)  # type: ignore[call-arg]


def test_exceptions_come_through_as_they_are() -> None:
    error = KeyError("gone")

    def fail() -> None:
        raise error

    context: Any = {KEYWORD: CARRIED}
    with pytest.raises(KeyError) as caught:
        follow(fail)(**context)
    assert caught.value is error


def test_following_twice_adds_nothing() -> None:
    followed = follow(add)
    assert follow(followed) is followed


def test_a_decorated_generator_stays_one_for_ray() -> None:
    followed = follow(logged(count))
    assert inspect.isgeneratorfunction(followed)
    assert list(followed(2)) == [0, 1]
    assert not hasattr(followed, "__wrapped__")


def test_only_what_ray_could_call_is_followed() -> None:
    with pytest.raises(TypeError, match="can be followed"):
        follow(7)


class Base:
    def inherited(self) -> str:
        return "inherited"

    @staticmethod
    def fixed() -> str:
        return "fixed"

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__


class Counter(Base):
    def __init__(self, start: int = 0) -> None:
        self.value = start

    @ray.method(num_returns=2, concurrency_group="io")
    def pair(self) -> tuple[int, int]:
        return self.value, self.value

    async def later(self, *, by: int) -> int:
        return self.value + by


def test_an_actor_class_is_followed_and_the_class_behind_it_is_not() -> None:
    remote: Any = ray.remote
    actor = follow(remote(concurrency_groups={"io": 1})(Counter))
    meta: Any = actor.__ray_metadata__
    signatures = meta.method_meta.signatures
    followed = {name for name, signature in signatures.items() if accepts(signature)}
    assert followed == {"__init__", "inherited", "pair", "later"}
    assert meta.method_meta.num_returns["pair"] == 2
    assert meta.modified_class.pair.__ray_num_returns__ == 2
    assert meta.method_meta.concurrency_group_for_methods == {"pair": "io"}
    methods: list[Any] = [Counter.__init__, Counter.pair, Counter.later, Base.inherited]
    for method in methods:
        assert not accepts(inspect.signature(method).parameters.values())


def test_an_actor_class_that_was_used_before_becomes_another_one_for_ray() -> None:
    actor: Any = ray.remote(Counter)
    meta: Any = actor.__ray_metadata__
    meta.last_export_cluster_and_job = ("cluster", "job")
    old, old_signatures = meta.actor_creation_function_descriptor, meta.method_meta.signatures
    follow(actor)
    assert meta.last_export_cluster_and_job is None
    assert meta.actor_creation_function_descriptor != old
    assert not accepts(old_signatures["later"])  # what handles of living actors go by
    assert accepts(meta.method_meta.signatures["later"])


def test_a_remote_function_that_was_used_before_becomes_another_one_for_ray() -> None:
    remote: Any = ray.remote(add)
    remote._last_export_cluster_and_job = ("cluster", "job")
    remote._function_signature = []
    old = remote._uuid
    follow(remote)
    assert remote._uuid != old
    assert remote._last_export_cluster_and_job is None
    assert remote._function_signature is None
    assert remote._function(1) == 2


def test_what_is_followed_runs_where_rollscope_is_not_installed(tmp_path: Path) -> None:
    def greet(name: str) -> str:
        return f"hello {name}"

    greet.__module__ = "__main__"
    pickled = tmp_path / "greet"
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    pickled.write_bytes(dumps(follow(greet)))
    program = f"""
import pickle, sys
sys.modules["rollscope"] = None
with open({str(pickled)!r}, "rb") as file:
    greet = pickle.load(file)
print(greet("world", {KEYWORD}={CARRIED!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "hello world"
