"""Faster twins, on CUDA in Triton. Importing this puts them in charge where they apply."""

from importlib.util import find_spec

from ..measures._handwritten import TWINS
from ..predictions import ROW_KERNELS
from ._captured import Replays as Replays
from ._captured import captured as captured
from ._cpu_graph import ON_CPU_GRAPH
from ._cpu_rows import ON_CPU
from ._cuda_rows import ON_CUDA
from ._linear import linear_predictions as linear_predictions
from ._replayable import replayable as replayable
from ._switch import as_it_is as as_it_is
from ._switch import use as use
from ._twins import OF_BATCHES

if find_spec("triton") is not None:
    ROW_KERNELS.append(ON_CUDA)
    TWINS.update(OF_BATCHES)
ROW_KERNELS.extend((*ON_CPU, ON_CPU_GRAPH))
