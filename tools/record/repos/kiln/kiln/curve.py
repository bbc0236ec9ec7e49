"""Times and temperatures of a programme."""

ROOM = 20


def ramp_minutes(start, step):
    """Minutes from `start` degrees to the target of `step`; cooling counts as heating does."""
    return round(abs(step.target - start) * 60 / step.rate)


def total_minutes(steps, start=ROOM):
    """Length of the whole firing."""
    total = 0
    for step in steps:
        total += ramp_minutes(start, step) + step.hold
        start = step.target
    return total


def temperature(steps, minute, start=ROOM):
    """Degrees after `minute` minutes, rounded; the last target when the firing is over."""
    for step in steps:
        ramp = ramp_minutes(start, step)
        if minute < ramp:
            return round(start + (step.target - start) * minute / ramp)
        if minute < ramp + step.hold:
            return step.target
        minute -= ramp + step.hold
        start = step.target
    return start
