"""Items on the shelf, by SKU."""

import csv
from dataclasses import dataclass, field


@dataclass
class Item:
    sku: str
    name: str
    quantity: int
    unit_cents: int


class OutOfStock(Exception):
    """More was asked for than there is."""


@dataclass
class Stock:
    items: dict[str, Item] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str) -> "Stock":
        stock = cls()
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                stock.add(Item(row["sku"], row["name"], int(row["quantity"]), int(row["unit_cents"])))
        return stock

    def add(self, item: Item) -> None:
        if item.sku in self.items:
            self.items[item.sku].quantity += item.quantity
        else:
            self.items[item.sku] = item

    def remove(self, sku: str, quantity: int) -> int:
        """Take `quantity` pieces and return what is left."""
        item = self.items[sku]
        if quantity > item.quantity:
            raise OutOfStock(f"{sku}: {quantity} asked, {item.quantity} left")
        item.quantity -= quantity
        return item.quantity

    def low(self, limit: int) -> list[Item]:
        """Items with at most `limit` pieces, fewest first."""
        return sorted(
            (item for item in self.items.values() if item.quantity <= limit),
            key=lambda item: (item.quantity, item.sku),
        )
