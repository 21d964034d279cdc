"""Dask: where it is imported, its collections, and the cluster that does the work, if one does."""

from __future__ import annotations

import importlib
import sys
import time
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dask.delayed import Delayed

__all__ = [
    "client_in_use",
    "computed",
    "gathered",
    "graphs_of_any_size",
    "is_array",
    "is_collection",
    "is_frame",
    "is_series",
    "module",
    "persisted",
    "workers_of",
]

_LOOK = 2.0  # seconds from one look at the workers to the next
_PATIENCE = "eigenfeat.no-workers-timeout"
_had_workers: weakref.WeakSet[Any] = weakref.WeakSet()  # clients


def module(name: str) -> Any:
    """Import ``dask`` or a part of it; the error says which extra has it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"eigenfeat.distributed needs {name}: pip install 'eigenfeat[dask]'"
        ) from error


def is_collection(X: object) -> bool:
    """Whether `X` is Dask's: array, data frame, series or another."""
    return hasattr(X, "__dask_graph__")


def is_array(X: object) -> bool:
    """Whether `X` is a Dask array."""
    return is_collection(X) and hasattr(X, "chunks")


def is_frame(X: object) -> bool:
    """Whether `X` is a Dask data frame."""
    return is_collection(X) and hasattr(X, "columns") and hasattr(X, "map_partitions")


def is_series(X: object) -> bool:
    """Whether `X` is a Dask series."""
    return is_collection(X) and hasattr(X, "to_dask_array") and getattr(X, "ndim", 2) == 1


# ---- the cluster ---------------------------------------------------------------------------------


def client_in_use() -> Any:
    """The client whose scheduler is Dask's current one, or None."""
    if "distributed" not in sys.modules:
        return None
    client = getattr(module("dask.base").get_scheduler(), "__self__", None)
    return client if isinstance(client, module("distributed").Client) else None


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler says of its workers, by address.

    Raises
    ------
    RuntimeError
        If the client has been closed.
    """
    try:
        result = client.scheduler_info(n_workers=-1)
    except TypeError:  # Dask before 2025.4 has no such argument, and tells of all
        result = client.scheduler_info()
    if "workers" not in result:  # a client that is being closed knows nothing
        raise RuntimeError("client: expected an open client, got one closed during the computation")
    return cast("dict[str, Any]", result["workers"])


def computed(tasks: Sequence[Delayed]) -> list[Any]:
    """Results of tasks, by whatever scheduler is current.

    Raises
    ------
    TimeoutError
        If all workers are lost, and none comes back.
    """
    client = client_in_use()
    if client is None:
        return list(module("dask").compute(*tasks))
    with graphs_of_any_size():
        futures = client.compute(list(tasks))
    return gathered(client, futures)


def gathered(client: Any, futures: Sequence[object]) -> list[Any]:
    """Results of futures; see `computed`."""
    _finished(client, futures)
    return list(client.gather(futures))


def persisted(tasks: Sequence[Delayed]) -> list[Delayed]:
    """The same tasks, whose results stay where they were computed; see `computed`."""
    client = client_in_use()
    if client is None:
        return list(module("dask").persist(*tasks))
    with graphs_of_any_size():
        persisted = list(module("dask").persist(*tasks))
    _finished(client, module("distributed").futures_of(persisted))
    return persisted


def _finished(client: Any, futures: Sequence[Any]) -> None:
    """Wait for futures, but not for ever without any worker; see `computed`.

    A cluster that never had one may be waiting for its first.
    """
    dask, distributed = module("dask"), module("distributed")
    patience = module("dask.utils").parse_timedelta(dask.config.get(_PATIENCE, "5 minutes"))
    if client not in _had_workers and workers_of(client):
        _had_workers.add(client)
    alone_since = None
    while True:
        try:
            distributed.wait(futures, timeout=_LOOK)
        except distributed.TimeoutError:
            pass
        else:
            return
        if workers_of(client):
            _had_workers.add(client)
            alone_since = None
        elif client in _had_workers:
            alone_since = alone_since or time.monotonic()
            if patience is not None and time.monotonic() - alone_since > patience:
                client.cancel(futures)
                raise TimeoutError(_no_workers(patience))


def _no_workers(seconds: float) -> str:
    return (
        f"workers: expected some, got none for {seconds:g} s after all were lost. The estimator is "
        "as it was, and persisted rows are made anew from their source: start workers, and call "
        f"again. dask.config.set({{'{_PATIENCE}': ...}}) says how long to wait; None is for ever"
    )


def graphs_of_any_size() -> AbstractContextManager[object]:
    """Let Dask send what a pass needs with its graph, so that no lost worker takes it along.

    From 10 MB on it would rather have it scattered, and says so.
    """
    setting = {"distributed.admin.large-graph-warning-threshold": "1TB"}
    return cast("AbstractContextManager[Any]", module("dask").config.set(setting))
