from eigenfeat._base.saved_files import FileFormatError as FileFormatError
from eigenfeat.early import NotCertifiedError as NotCertifiedError
from eigenfeat.io.errors import BadRowError as BadRowError
from eigenfeat.pencils.class_matrices import SingularDenominatorError as SingularDenominatorError
