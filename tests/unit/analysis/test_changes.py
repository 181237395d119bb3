"""At which step something changed."""

from rollscope.analysis.changes import Change, changes


def _points(*values: float | None) -> list[tuple[int, float | None]]:
    return list(enumerate(values, start=1))


def test_a_shift_is_dated_to_the_first_step_beyond_half_of_it() -> None:
    series = {"wall": _points(*[10.0] * 12, *[20.0] * 8)}

    found = changes(series)

    assert found.marks == [Change("wall", 13, 10.0, 20.0, 0.5)]
    assert found.largest == found.marks


def test_a_single_bad_step_is_no_change() -> None:
    assert changes({"wall": _points(*[10.0] * 12, 90.0, 90.0, *[10.0] * 12)}).marks == []


def test_noise_is_no_change() -> None:
    noisy = [10.0, 12.0, 8.0, 11.0, 9.0] * 3
    assert changes({"wall": _points(*noisy, 13.0, 13.0, 13.0, 13.0, 13.0)}).marks == []
    assert changes({"wall": _points(*noisy, 19.0, 19.0, 19.0)}).marks != []


def test_less_than_a_tenth_is_no_change() -> None:
    assert changes({"wall": _points(*[100.0] * 12, *[109.0] * 8)}).marks == []


def test_fifteen_steps_are_needed() -> None:
    assert changes({"wall": _points(*[1.0] * 10, *[5.0] * 4)}).marks == []
    assert changes({"wall": _points(*[1.0] * 10, *[5.0] * 5)}).marks != []
    assert changes({"wall": [], "none": _points(*[None] * 30)}).marks == []


def test_a_series_has_one_mark_in_ten_steps() -> None:
    there_and_back = _points(*[1.0] * 12, *[5.0] * 6, *[1.0] * 20)
    for_long = _points(*[1.0] * 12, *[5.0] * 16, *[1.0] * 12)

    assert [mark.step for mark in changes({"x": there_and_back}).marks] == [13]
    assert [mark.step for mark in changes({"x": for_long}).marks] == [13, 29]


def test_steps_without_a_value_are_passed_over() -> None:
    points = _points(*[4.0, None] * 10, *[8.0, None] * 5)

    assert [mark.step for mark in changes({"lag": points}).marks] == [21]


def test_errors_out_of_nowhere_are_a_change() -> None:
    (mark,) = changes({"errors": _points(*[0.0] * 12, *[3.0] * 5)}).marks

    assert (mark.step, mark.before, mark.after, mark.size) == (13, 0.0, 3.0, 1.0)


def test_the_three_largest_are_listed() -> None:
    series = {f"x{n}": _points(*[10.0] * 12, *[10.0 + 5 * n] * 5) for n in range(1, 6)}

    found = changes(series)

    assert len(found.marks) == 5
    assert [mark.series for mark in found.largest] == ["x5", "x4", "x3"]
