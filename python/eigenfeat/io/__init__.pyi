from eigenfeat.io.c_header import to_c as to_c
from eigenfeat.io.errors import BadRowError as BadRowError
from eigenfeat.io.onnx import to_onnx as to_onnx
from eigenfeat.io.opening import open_rows as open_rows
from eigenfeat.io.rows import FileRows as FileRows
from eigenfeat.io.saving import load as load
from eigenfeat.io.saving import save as save
