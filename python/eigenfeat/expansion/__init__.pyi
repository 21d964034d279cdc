from .features import ExpandedRows as ExpandedRows
