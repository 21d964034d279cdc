"""How tests are divided among the processes of pytest-xdist."""

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Neighbouring tests to the same process, which makes what they share once."""
    from xdist.scheduler import WorkStealingScheduling

    # "load" is what -n means where nothing else is said.
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
