from logtally.lines import Entry
from logtally.tally import levels, total_seconds

ENTRIES = [
    Entry(480, "INFO", "saw", "warm up took 1m30s"),
    Entry(484, "INFO", "saw", "cut took 45s"),
    Entry(491, "WARN", "saw", "blade hot"),
    Entry(492, "ERROR", "saw", "emergency stop"),
]


def test_levels_most_frequent_first():
    assert list(levels(ENTRIES).items()) == [("INFO", 2), ("ERROR", 1), ("WARN", 1)]


def test_total_seconds():
    assert total_seconds(ENTRIES) == 135
