import pytest

from kiln.steps import Step, load


def test_load(tmp_path):
    path = tmp_path / "bisque.csv"
    path.write_text("600,100,0\n950,150,20\n")
    assert load(path) == [Step(600, 100, 0), Step(950, 150, 20)]


def test_load_names_the_bad_line(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("600,100,0\n950,fast,20\n")
    with pytest.raises(ValueError, match="bad.csv:2"):
        load(path)
