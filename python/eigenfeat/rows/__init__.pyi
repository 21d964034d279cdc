from eigenfeat.rows.blocks import ArrayBlocks as ArrayBlocks
from eigenfeat.rows.blocks import Block as Block
from eigenfeat.rows.blocks import GeneratedBlocks as GeneratedBlocks
from eigenfeat.rows.blocks import RowBlocks as RowBlocks
from eigenfeat.rows.targets import discretize_target as discretize_target
from eigenfeat.rows.targets import supervised_contractions as supervised_contractions
from eigenfeat.rows.targets import target_groups as target_groups
