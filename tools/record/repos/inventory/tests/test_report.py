from inventory.report import low_report, total_value
from inventory.stock import Item, Stock


def make_stock():
    stock = Stock()
    stock.add(Item("S-02", "stool", 4, 2975))
    stock.add(Item("W-11", "wall shelf", 0, 7490))
    return stock


def test_low_report_fewest_first():
    lines = low_report(make_stock(), 5).splitlines()
    assert lines[0] == "W-11  wall shelf     0"
    assert lines[-1] == "2 to reorder"


def test_total_value():
    assert total_value(make_stock()) == 11900
