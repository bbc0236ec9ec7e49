"""What every test needs, however tests are run."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from agentworldbench.engine import retry
from tests.helpers import several_judges
from tests.helpers.asking import set_key

# Milliseconds an example tell of the machine and of who else works on it.
settings.register_profile("awb", deadline=None)
settings.load_profile("awb")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Captured output with half a surrogate pair, which tests of odd replies print, cannot go from one
    process to another as it is."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode("utf-8")) for name, text in report.sections
    ]
    return report


@pytest.fixture(scope="module")
def quick_retries() -> Iterator[None]:
    """Keys of the loopback servers are set, and the first wait before another attempt is a millisecond."""
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch)
        patch.setattr(retry, "FIRST_WAIT", 0.001)
        yield


@pytest.fixture(scope="module")
def few_draws() -> Iterator[None]:
    """Intervals of agreement from fewer draws: most of the time of a run with several judges or repeats."""
    with pytest.MonkeyPatch.context() as patch:
        several_judges.few_draws(patch)
        yield
