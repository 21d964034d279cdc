from .c_header import to_c as to_c
from .errors import BadRowError as BadRowError
from .onnx import to_onnx as to_onnx
from .opening import open_rows as open_rows
from .rows import FileRows as FileRows
from .saving import load as load
from .saving import save as save
