from __future__ import annotations

import logging
from typing import Any

import pytest

from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.trajectory import check_trajectory_format, concat_padded


def whole(values: Any) -> Any:
    return choose_arrays().array(values, "int32")


def sound(batch: int = 2, length: int = 3, **more: Any) -> dict[str, Any]:
    ones = whole([[1] * length] * batch)
    return {"input_ids": ones, "attention_mask": ones, **more}


class Interaction:
    def to_tensor_dict(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("data", [None, {"a": Interaction()}])
def test_nothing_and_interactions_are_valid(data: Any) -> None:
    assert check_trajectory_format(data, batch_size=5, expected_keys={"rewards"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1], "Expected data to be None or dict, got <class 'list'>"),
        ({}, "Data dict cannot be empty"),
        (
            {"rewards": 1},
            r"Missing required keys in tensor data: \['input_ids', 'attention_mask'\]",
        ),
        ({"input_ids": 1, "b": Interaction()}, r"Missing required keys.*\['attention_mask'\]"),
        ({"input_ids": [1], "attention_mask": [1]}, "Expected 2D tensors.*got <class 'list'>"),
    ],
)
def test_what_is_no_trajectory_is_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_trajectory_format(data)


def test_ids_of_another_shape_are_refused() -> None:
    flat = whole([1, 2])
    with pytest.raises(
        ValueError, match=r"Expected 2D tensors with shape \[batch_size, max_seqlen\], got 1D"
    ):
        check_trajectory_format({"input_ids": flat, "attention_mask": flat})


def test_another_number_of_samples_is_refused() -> None:
    assert check_trajectory_format(sound(batch=2), batch_size=2)
    with pytest.raises(ValueError, match="Expected batch size 3, got 2"):
        check_trajectory_format(sound(batch=2), batch_size=3)


@pytest.mark.parametrize(
    "values", [[[1, 2, 3]], [[1, 2], [1, 2]], [1, 2, 3], 4], ids=["rows", "columns", "flat", "0-D"]
)
def test_odd_sizes_are_warned_of_and_pass(values: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert check_trajectory_format(sound(odd=whole(values)))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "odd" in record.getMessage()
    assert "[2, 3]" in record.getMessage()


@pytest.mark.parametrize("values", [[1, 2], [[1, 2, 3]] * 2, [[[1], [2], [3]]] * 2])
def test_fitting_sizes_pass_in_silence(values: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert check_trajectory_format(sound(rewards=whole(values)))
    assert not caplog.records


@pytest.mark.parametrize("value", [[], "pixels", [1], [{"pixel_values": 1}, 2]])
def test_images_are_a_list_of_dicts(value: Any) -> None:
    with pytest.raises(ValueError, match="should be a non-empty list of dicts"):
        check_trajectory_format(sound(multi_modal_input=value))


def test_images_have_pixels() -> None:
    entry = {"pixel_values": 1}
    assert check_trajectory_format(sound(multi_modal_input=[entry, entry]))
    with pytest.raises(ValueError, match="at least contain the `pixel_values` field"):
        check_trajectory_format(sound(multi_modal_input=[entry, {"image_grid_thw": 1}]))


def test_other_values_are_told_of_but_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("mine")
    with caplog.at_level(logging.INFO, "mine"):
        check_trajectory_format(sound(answer="secret", score=9.75), logger=logger)
    text = caplog.text
    assert "answer" in text
    assert "str of length 6" in text
    assert "float of length None" in text
    assert "secret" not in text
    assert "9.75" not in text


def test_expected_keys_must_be_there_and_more_may_be() -> None:
    assert check_trajectory_format(sound(rewards=whole([1, 2])), expected_keys=["input_ids"])
    with pytest.raises(
        ValueError, match=r"Inconsistent keys compared to expected: .*but \['rewards'\] are missing"
    ):
        check_trajectory_format(sound(), expected_keys=["input_ids", "rewards"])


def test_nothing_joins_to_nothing() -> None:
    assert concat_padded([]) == {}


def test_samples_are_joined_and_padded_on_the_right() -> None:
    images = [{"pixel_values": 1}]
    joined = concat_padded(
        [
            {
                "input_ids": whole([[1, 2, 3]]),
                "attention_mask": choose_arrays().array([[True] * 3], "bool"),
                "versions": whole([[-1, 4, 4]]),
                "rewards": choose_arrays().array([1.0], "float32"),
                "multi_modal_input": images,
                "deep": whole([[[1, 2]]]),
                "scale": whole(3),
                "name": "first",
            },
            {
                "input_ids": whole([[7], [8]]),
                "attention_mask": choose_arrays().array([[True], [True]], "bool"),
                "versions": whole([[5], [6]]),
                "rewards": choose_arrays().array([0.5, 0.0], "float32"),
                "multi_modal_input": [*images, *images],
                "deep": whole([[[3], [4]], [[5], [6]]]),
                "scale": whole(4),
                "name": "second",
            },
        ]
    )
    assert joined["input_ids"].tolist() == [[1, 2, 3], [7, 0, 0], [8, 0, 0]]
    assert joined["attention_mask"].tolist() == [
        [True, True, True],
        [True, False, False],
        [True, False, False],
    ]
    assert joined["versions"].tolist() == [[-1, 4, 4], [5, -1, -1], [6, -1, -1]]
    assert joined["rewards"].tolist() == [1.0, 0.5, 0.0]
    assert joined["deep"].tolist() == [[[1, 2], [0, 0]], [[3, 0], [4, 0]], [[5, 0], [6, 0]]]
    assert joined["multi_modal_input"] == images * 3
    assert joined["scale"].tolist() == 3
    assert joined["name"] == "first"
    assert check_trajectory_format(joined, batch_size=3)


def test_joining_keeps_types_and_loses_no_fraction() -> None:
    broken = choose_arrays().array([0.5], "float32")
    joined = concat_padded([{"r": whole([1])}, {"r": broken}])
    assert joined["r"].tolist() == [1.0, 0.5]
    same = concat_padded([{"r": whole([1])}, {"r": whole([2])}])
    assert same["r"].dtype == whole([1]).dtype


def test_different_keys_and_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"different keys cannot be joined: \['b'\]"):
        concat_padded([{"a": whole([1])}, {"a": whole([1]), "b": whole([1])}])
    with pytest.raises(ValueError, match=r"a has \[1, 2\] dimensions"):
        concat_padded([{"a": whole([1])}, {"a": whole([[1]])}])
