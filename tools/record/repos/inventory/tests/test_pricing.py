from inventory.pricing import discount_percent, line_total


def test_no_discount_for_single_pieces():
    assert line_total(1, 1999) == 1999


def test_discount_starts_at_ten():
    assert discount_percent(9) == 0
    assert discount_percent(10) == 5


def test_largest_discount():
    assert line_total(50, 200) == 8800


def test_half_a_cent_is_rounded_up():
    assert line_total(10, 11) == 105
