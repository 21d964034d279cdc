"""How tests are collected, and divided among the processes of pytest-xdist."""

import gc

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and collected tests stay to the end: the garbage collector leaves them out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give neighbouring tests to the same process, so that shared fixtures are made once."""
    from xdist.scheduler import WorkStealingScheduling

    # "load" is the default with -n.
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
