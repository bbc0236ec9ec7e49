from kiln.curve import temperature, total_minutes
from kiln.steps import Step

STEPS = [Step(620, 120, 30), Step(320, 300, 0)]


def test_total_counts_ramps_and_holds():
    assert total_minutes(STEPS) == 300 + 30 + 60


def test_temperature_on_the_ramp():
    assert temperature(STEPS, 150) == 320


def test_temperature_while_holding():
    assert temperature(STEPS, 310) == 620


def test_temperature_while_cooling():
    assert temperature(STEPS, 360) == 470


def test_temperature_when_it_is_over():
    assert temperature(STEPS, 1000) == 320
