from .blocks import ArrayBlocks as ArrayBlocks
from .blocks import Block as Block
from .blocks import GeneratedBlocks as GeneratedBlocks
from .blocks import RowBlocks as RowBlocks
from .targets import discretize_target as discretize_target
from .targets import supervised_contractions as supervised_contractions
from .targets import target_groups as target_groups
