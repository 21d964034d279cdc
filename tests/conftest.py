"""How tests are divided among the processes of pytest-xdist."""

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give neighbouring tests to the same process, so that shared fixtures are made once."""
    from xdist.scheduler import WorkStealingScheduling

    # "load" is the default with -n.
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
