from eigenfeat.expansion.features import ExpandedRows as ExpandedRows
