import pytest

from inventory.stock import Item, OutOfStock, Stock


@pytest.fixture
def stock():
    stock = Stock()
    stock.add(Item("L-01", "lamp", 3, 1850))
    stock.add(Item("R-07", "rug", 12, 4200))
    return stock


def test_add_same_sku_adds_up(stock):
    stock.add(Item("L-01", "lamp", 2, 1850))
    assert stock.items["L-01"].quantity == 5


def test_remove_returns_rest(stock):
    assert stock.remove("R-07", 5) == 7


def test_remove_too_many(stock):
    with pytest.raises(OutOfStock):
        stock.remove("L-01", 4)


def test_low_includes_limit(stock):
    assert [item.sku for item in stock.low(3)] == ["L-01"]
