"""Table 4 on speech that is at hand: frames of spoken digits instead of TIMIT's phones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import builders, settings
from bench.papers.protocol import Context, Data, Method, Paper, Problem, Protocol, Rows
from bench.papers.recordings import FSDD_ARRAYS, Frames, fsdd_frames

__all__ = ["PROTOCOL", "load"]

DESCRIBED = (
    "(t,) samples of all recordings",
    "(n + 1,) where recordings begin and end",
    "(n,) digits",
    "(n,) numbers of speakers",
    "their names",
    "samples a second",
)


def load(path: Path, context: Context) -> Data:
    """Return frames of four speakers to train on, of one to choose on and of one to test on.

    A quick run takes one recording of six.
    """
    frames = fsdd_frames(_fewer(path) if context.quick else path, settings.N_STATES)
    apart = {settings.DEVELOPMENT_SPEAKER, settings.TEST_SPEAKER}
    others = [name for name in frames.speaker_names if name not in apart]
    test = frames.spoken_by(settings.TEST_SPEAKER)
    return Data(
        train=_rows(frames, frames.spoken_by(*others)),
        test=lambda: _rows(frames, test),
        development=_rows(frames, frames.spoken_by(settings.DEVELOPMENT_SPEAKER)),
    )


def _rows(frames: Frames, chosen: NDArray[np.intp]) -> Rows:
    return Rows(frames.X[chosen], frames.y[chosen])


def _fewer(path: Path) -> dict[str, Any]:
    """Return one recording of several, end to end again."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in FSDD_ARRAYS}
    offsets = arrays["offsets"]
    kept = np.arange(0, len(offsets) - 1, settings.SPEECH_QUICK_EVERY)
    arrays["audio"] = np.concatenate([arrays["audio"][offsets[k] : offsets[k + 1]] for k in kept])
    arrays["offsets"] = np.concatenate([[0], np.cumsum(offsets[kept + 1] - offsets[kept])])
    return {**arrays, "digit": arrays["digit"][kept], "speaker": arrays["speaker"][kept]}


METHODS = (
    Method(
        "GEM (ensemble)",
        builders.gem,
        settings.SPEECH_GEM,
        Paper(error="40.86", cross_entropy="1.581"),
        ensemble=builders.hypercubes,
        members=Paper("GEM", error="41.87 ± 0.073", cross_entropy="1.637 ± 0.001"),
    ),
)

PROTOCOL = Protocol(
    "speech",
    "frames of spoken digits, Table 4 of the paper",
    (
        Problem(
            name="speech",
            title="Free Spoken Digits: 10 digits of 3 states (the paper has TIMIT's 183 states)",
            split=(
                f"4 speakers to train on, {settings.DEVELOPMENT_SPEAKER} to choose on by "
                f"cross-entropy, {settings.TEST_SPEAKER} to test on"
            ),
            file="fsdd.npz",
            arrays=dict(zip(FSDD_ARRAYS, DESCRIBED, strict=True)),
            load=load,
            methods=METHODS,
            quoted=(Paper("T-DSN", error="40.9", cross_entropy="2.02"),),
            objective="cross_entropy",
        ),
    ),
)
