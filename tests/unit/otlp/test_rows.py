import msgspec
import pytest

from rollscope.otlp.rows import fit_attrs


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"\ud800": 1}, [["x", {"y": "\udfff"}]]])
def test_half_a_character_is_written_out_however_deep_it_stands(value: object) -> None:
    held = msgspec.msgpack.decode(fit_attrs({"odd": value, "good": [1, "ä"]}))
    assert held["good"] == [1, "ä"]
    assert "\\ud" in repr(held["odd"])
