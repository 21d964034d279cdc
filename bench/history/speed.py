"""The steps that most of the time goes to, on the problems of `bench/run.py`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from bench.problems import class_second_moments, dense_classification, digits
from eigenfeat.demo.early import signals
from eigenfeat.early import ReliableClassifier
from eigenfeat.ldg import LDG
from eigenfeat.maxmargin import MulticlassSVM

THREADS = int(os.environ.get("EIGENFEAT_BENCH_THREADS", "1"))


def mnist(n=None):
    folder = os.environ.get("EIGENFEAT_BENCH_DATA")
    return digits(Path(folder) if folder else None).first(n)


class Moments:
    """Class moments of 60,000 x 784 rows in float32."""

    timeout = 300

    def setup(self):
        self.rows = mnist()

    def time_update(self):
        ef.ClassMoments().update(self.rows.X, self.rows.y, n_threads=THREADS)

    def peakmem_update(self):
        ef.ClassMoments().update(self.rows.X, self.rows.y, n_threads=THREADS)


class Pencils:
    """The 20 leading pairs of ten pencils of order 784."""

    timeout = 300

    def setup(self):
        moments = class_second_moments(mnist(20_000))
        order = moments.shape[1]
        ridge = 0.5 * np.trace(moments, axis1=1, axis2=2)[:, None, None] / order * np.eye(order)
        self.A, self.B = moments, np.roll(moments + ridge, 1, axis=0)

    def time_leading(self):
        ef.generalized_eigh(self.A, self.B, n_vectors=20, n_threads=THREADS)


class Classifiers:
    """Fits and predictions from rows to labels."""

    timeout = 600
    params = ("digits", "dense")
    param_names = ("rows",)

    def setup(self, rows):
        found = mnist(4000) if rows == "digits" else dense_classification("float32").first(2000)
        self.X, self.y = found.X, found.y
        self.model = ef.GEMClassifier(n_threads=THREADS).fit(self.X, self.y)

    def time_fit(self, rows):
        ef.GEMClassifier(n_threads=THREADS).fit(self.X, self.y)

    def time_predict(self, rows):
        self.model.predict(self.X)


class Reductions:
    """LDG on 3,000 rows of digits."""

    timeout = 300

    def setup(self):
        found = mnist(3000)
        self.X, self.y = found.X.astype(np.float64), found.y

    def time_ldg(self):
        LDG(n_components=10, gamma=0.5, n_neighbors=10, n_threads=THREADS).fit(self.X, self.y)


class SupportVectors:
    """The multiclass SVM's dual on 2,000 x 1,000 rows in float32, and its duality gap."""

    timeout = 300
    params = (1e-4, 1e-3)
    param_names = ("C",)

    def setup(self, C):
        found = dense_classification("float32").first(2000)
        self.X, self.y = found.X, found.y
        self.model = MulticlassSVM(C=C, random_state=0, n_threads=THREADS)

    def time_fit(self, C):
        self.model.fit(self.X, self.y)

    def track_gap(self, C):
        model = self.model.fit(self.X, self.y)
        return model.duality_gap_ / model.objective_


class Streams:
    """Early decisions of simulated series of 60 samples."""

    timeout = 300

    def setup(self):
        rng = np.random.default_rng(0)
        X, y = signals(300, rng)
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        self.model = ReliableClassifier(lda, correct=False, n_threads=THREADS).fit(X, y)
        self.new, _ = signals(2000, rng)

    def time_predict_early(self):
        self.model.predict_early(self.new)

    def time_one_stream(self):
        stream = self.model.stream(0.999999)
        for value in self.new[0, :59]:
            stream.push(value)
