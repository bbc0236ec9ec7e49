from logtally.lines import Entry, parse, read


def test_parse():
    assert parse("08:11 WARN saw: blade hot\n") == Entry(491, "WARN", "saw", "blade hot")


def test_parse_garbage():
    assert parse("garbled line") is None


def test_read_counts_skipped(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("07:00 INFO saw: on\n\nnoise\n")
    entries, skipped = read(str(path))
    assert len(entries) == 1
    assert skipped == 1
