"""Every number that one may want to change: seeds, sizes and hyperparameters.

A tuple in `grid` is chosen from on held-out rows; what `quick` names replaces it in a quick run. A
grid of single values costs no choosing.
"""

from __future__ import annotations

from bench.papers.protocol import Hyperparameters

SEED = 0
HELD_OUT = 1 / 6  # share of the training rows to choose hyperparameters on
MEMBERS = 5  # of the ensemble; as many random hypercubes as the paper draws

# ---- MNIST, Table 2 ------------------------------------------------------------------------------

MNIST_QUICK_ROWS = 6_000

MNIST_GEM = Hyperparameters(
    fixed={"scale": "none", "constant": False, "expansion": "shifted"},  # pixels have one unit
    grid={"ridge": (0.5,), "threshold": (1.9, 2.5), "n_directions": (30,), "penalty": (0.05, 0.02)},
    quick={"threshold": 1.9, "n_directions": 5, "penalty": (0.1, 0.02)},
)
MNIST_DEEP = Hyperparameters(
    fixed={
        "scale": "none",
        "constant": False,
        "depth": 2,
        # The authors' choices; the ridges are 0.1 in the units of the features.
        "hidden_ridge": 1.0,
        "ridge": 0.37,
        "threshold": 7.5,
        "n_directions": 20,
        "powers": (1, 2),
        # Chosen in advance on the third to the sixth 10,000 training rows, each held out in turn:
        # errors with penalties of 0.02, 0.005, 0.002 are 457, 449, 451 of 40,000, and 470, 462, 469
        # without the first layer's features.
        "include_input": True,
        "penalty": 0.005,
    },
    quick={"n_directions": 10, "hidden_directions": 5, "penalty": 0.02},
)
RANDOM_DIRECTIONS = 900  # where no count of GEM's directions is known
MNIST_RANDOM = Hyperparameters(
    grid={"multinomiallogit__penalty": (0.02, 0.1)},
    quick={"multinomiallogit__penalty": 0.1},
)

# ---- Covertype, Table 3 --------------------------------------------------------------------------

COVERTYPE_QUICK_ROWS = 12_000
COVERTYPE_TEST_SHARE = 0.1

COVERTYPE_GEM = Hyperparameters(
    grid={
        "ridge": (0.01, 0.1),
        "threshold": (1.0,),
        "n_directions": (20,),
        "penalty": (0.01, 0.001),
    },
    quick={"ridge": 0.1, "threshold": 1.0, "n_directions": 10, "penalty": (0.01, 0.1)},
)
COVERTYPE_DEEP = Hyperparameters(
    fixed={"depth": 2},
    grid={"ridge": (0.1,), "threshold": (None,), "n_directions": (30,), "penalty": (0.01, 0.001)},
    quick={"n_directions": 5, "penalty": 0.01},
)
COVERTYPE_RFF = Hyperparameters(
    fixed={"rbfsampler__n_components": 4_000},
    grid={
        "rbfsampler__gamma": (0.3, 1.0),
        "multinomiallogit__penalty": (0.001,),
    },
    quick={
        "rbfsampler__n_components": 1_000,
        "rbfsampler__gamma": 0.3,
        "multinomiallogit__penalty": 0.01,
    },
)
COVERTYPE_DRAWS = 6  # of Fourier features, for the ensemble of GEM on them
COVERTYPE_GEM_ON_RFF = Hyperparameters(
    fixed={
        "rbfsampler__n_components": 2_000,
        "gemclassifier__scale": "columns",
        "gemclassifier__expansion": "shifted",
    },
    grid={
        "rbfsampler__gamma": (0.2,),
        "gemclassifier__ridge": (0.01,),
        "gemclassifier__threshold": (None,),
        "gemclassifier__n_directions": (60,),
        "gemclassifier__penalty": (0.003,),
    },
    quick={
        "rbfsampler__n_components": 500,
        "rbfsampler__gamma": 0.3,
        "gemclassifier__n_directions": 10,
        "gemclassifier__penalty": 0.1,
    },
)

# ---- speech, Table 4 -----------------------------------------------------------------------------

DEVELOPMENT_SPEAKER, TEST_SPEAKER = "theo", "yweweler"  # the last two by name, unseen when chosen
N_STATES = 3
SPEECH_QUICK_EVERY = 6  # one recording of so many

SPEECH_GEM = Hyperparameters(
    fixed={"pairs": "hypercube", "scale": "columns"},  # cepstra, energy and slopes differ in unit
    grid={
        "ridge": (0.2, 0.5, 1.0),
        "threshold": (1.5,),
        "n_directions": (5, 10),
        "penalty": (0.1, 0.3, 1.0),
    },
    quick={"ridge": 0.5, "n_directions": 2, "penalty": (0.3, 1.0)},
)

# ---- defaults ------------------------------------------------------------------------------------

DEFAULTS_QUICK_ROWS = 1_500
OPENCV_TEST_SHARE = 0.5  # and of ringnorm and Covertype
OCR_TRAINING_FOLDS = (0,)  # the other folds are for testing

# ---- peers ---------------------------------------------------------------------------------------

SVC_ON_PIXELS = Hyperparameters(
    fixed={"gamma": "scale", "cache_size": 1_000}, grid={"C": (1.0, 10.0)}, quick={"C": 10.0}
)
SVC_ON_COVERTYPE = Hyperparameters(
    fixed={"cache_size": 1_000},
    grid={"C": (10.0,), "gamma": (0.3, 0.5, 1.0)},  # with 100 errors are more: overfitted
    quick={"gamma": 0.3},
)
PERCEPTRON = Hyperparameters(
    fixed={"hidden_layer_sizes": (512, 512), "early_stopping": True},
    quick={"hidden_layer_sizes": (128,)},
)
BOOSTING = Hyperparameters(fixed={"early_stopping": True}, quick={"max_iter": 15})

# ---- LDG, the thesis's chapters 3 and 4 ----------------------------------------------------------

LDG_SPLITS, LDG_QUICK_SPLITS = 10, 2
LDG_TRAINING_SHARE = 0.7
LDG_MOST_TRAINING, LDG_QUICK_TRAINING = 3_000, 200
LDG_MOST_TESTING, LDG_QUICK_TESTING = 5_000, 400  # which only MNIST has more of
LDG_GAMMAS = (0.2, 0.4, 0.6, 0.8, 1.0)  # section 3.4
LDG_MOST_DIMENSIONS = 40
LDG_RIDGE = 1e-3  # of Fisher's and local Fisher's scatters, for which the thesis has none
LDG_SPARSITY = 3  # section 3.4.1

LDG_SMALL_RIDGES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)  # section 3.5.2
LDG_SMALL_FOLDS = 5
LDG_SMALL_STEPS = (-1, 0, 1, 2, 4, 8, 16, 32)
LDG_SMALL_QUICK_TESTING = 200

TRANSFER_LABELLED = 2  # rows a class of the target, section 4.5.3
TRANSFER_EXTRA = 5  # dimensions beyond the classes
TRANSFER_QUICK_ROWS = 300  # of the source

# ---- early decisions, chapter 5 of Parrish's thesis ----------------------------------------------

EARLY_TAUS = (0.001, 0.1, 0.25, 0.9)
EARLY_PAIRWISE_TAUS = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
EARLY_TABLE_TAU = 0.9
EARLY_WANTED = (0.9, 0.95)  # agreements to calibrate for, on half of the test rows
EARLY_CONFIDENCE = 0.9
EARLY_SUPPORTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
EARLY_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of a series, for fixed times
EARLY_TEST_ROWS = 1_000
EARLY_QUICK_ROWS = 60
EARLY_SLOW_ROWS = 10  # for local QDA on Chebyshev sets, an eigenproblem a row, step and class
EARLY_QUICK_SLOW_ROWS = 2
EARLY_TIMED_ROWS = 50
EARLY_REPEATS = 3
EARLY_SVM_ITERATIONS = 5_000
