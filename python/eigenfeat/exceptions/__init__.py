"""Errors of files, of samples in files and of singular matrices."""

from eigenfeat._base.saved_files import FileFormatError
from eigenfeat.io.errors import BadRowError
from eigenfeat.pencils.problems import SingularDenominatorError

__all__ = ["BadRowError", "FileFormatError", "SingularDenominatorError"]
