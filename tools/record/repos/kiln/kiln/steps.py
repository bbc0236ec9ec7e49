"""Steps of a firing: a target in degrees, how fast to get there, how long to stay."""

import csv
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    target: int
    rate: int  # degrees per hour
    hold: int  # minutes


def load(path):
    """All steps of a programme file; ValueError names the first bad line."""
    steps = []
    with open(path, newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            try:
                target, rate, hold = (int(cell) for cell in row)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: three whole numbers needed") from error
            steps.append(Step(target, rate, hold))
    return steps
