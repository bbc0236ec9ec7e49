"""Prices with bulk discounts, in whole cents."""

DISCOUNTS = ((50, 12), (10, 5))


def discount_percent(quantity: int) -> int:
    """The discount for a line of `quantity` pieces."""
    for minimum, percent in DISCOUNTS:
        if quantity >= minimum:
            return percent
    return 0


def line_total(quantity: int, unit_cents: int) -> int:
    """Price of a line; half a cent is rounded up."""
    full = quantity * unit_cents
    return (full * (100 - discount_percent(quantity)) + 50) // 100
