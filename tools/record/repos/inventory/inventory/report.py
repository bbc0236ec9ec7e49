"""Plain text reports."""

from inventory.stock import Stock


def low_report(stock: Stock, limit: int) -> str:
    """One line for every item to reorder, and how many there are."""
    items = stock.low(limit)
    lines = [f"{item.sku:<6}{item.name:<12}{item.quantity:>4}" for item in items]
    return "\n".join([*lines, f"{len(items)} to reorder"])


def total_value(stock: Stock) -> int:
    """Worth of the whole stock in cents."""
    return sum(item.quantity * item.unit_cents for item in stock.items.values())
