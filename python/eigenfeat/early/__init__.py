"""Classify incomplete data as soon as the label of the complete data is known.

Parrish (2012), chapter 5.
"""

from eigenfeat.early.completion import Conditional, GaussianCompletion, MixtureCompletion
from eigenfeat.early.decisions import Decisions, EarlyDecisions, StreamDecision
from eigenfeat.early.local_qda import LocalQDA
from eigenfeat.early.minimum_cost import CostDecision, CostStream, MinimumCostClassifier
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.reliable_search import ReliableClassifierCV
from eigenfeat.early.sampling import Sampled
from eigenfeat.early.scores import EarlyScores, early_scores, reliability_curve
from eigenfeat.early.streams import Stream, Streams
from eigenfeat.signals.intervals import interval_summaries

__all__ = [
    "Conditional",
    "CostDecision",
    "CostStream",
    "Decisions",
    "EarlyDecisions",
    "EarlyScores",
    "GaussianCompletion",
    "LocalQDA",
    "MinimumCostClassifier",
    "MixtureCompletion",
    "ReliableClassifier",
    "ReliableClassifierCV",
    "Sampled",
    "Stream",
    "StreamDecision",
    "Streams",
    "early_scores",
    "interval_summaries",
    "reliability_curve",
]
