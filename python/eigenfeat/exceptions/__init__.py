"""Errors of files, of samples in files, of singular matrices and of certificates."""

from eigenfeat._base.saved_files import FileFormatError
from eigenfeat.early import NotCertifiedError
from eigenfeat.io.errors import BadRowError
from eigenfeat.pencils.class_matrices import SingularDenominatorError

__all__ = ["BadRowError", "FileFormatError", "NotCertifiedError", "SingularDenominatorError"]
