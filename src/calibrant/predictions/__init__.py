"""What a classifier said, and what was true."""

from ._predictions import Predictions as Predictions
from ._row_kernels import ROW_KERNELS as ROW_KERNELS
from ._row_kernels import Row as Row
from ._row_kernels import RowKernels as RowKernels
from ._rows import is_class as is_class
