from .cca import RandomizedCCA as RandomizedCCA
from .label_embedding import LabelEmbedding as LabelEmbedding
