import pytest

from logtally.durations import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("45s", 45), ("2m", 120), ("1m30s", 90), ("1h05m", 3900)],
)
def test_seconds(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "5x"])
def test_not_a_duration(text):
    with pytest.raises(ValueError):
        seconds(text)
