from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from rollscope.importing.values import seconds_to_ns


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_seconds_become_the_nanoseconds_that_were_written(whole: int, micros: int) -> None:
    text = f"{whole}.{micros:06}"
    assert seconds_to_ns(float(text)) == int(Decimal(text) * 10**9) == seconds_to_ns(text)
