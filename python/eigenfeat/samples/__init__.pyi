from eigenfeat.samples.blocks import ArrayBlocks as ArrayBlocks
from eigenfeat.samples.blocks import Block as Block
from eigenfeat.samples.blocks import GeneratedBlocks as GeneratedBlocks
from eigenfeat.samples.blocks import RowBlocks as RowBlocks
from eigenfeat.samples.targets import discretize_target as discretize_target
from eigenfeat.samples.targets import supervised_contractions as supervised_contractions
from eigenfeat.samples.targets import target_groups as target_groups
