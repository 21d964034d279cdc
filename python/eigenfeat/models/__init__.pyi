from eigenfeat.models.c_header import to_c as to_c
from eigenfeat.models.onnx import to_onnx as to_onnx
from eigenfeat.models.saving import load as load
from eigenfeat.models.saving import save as save
