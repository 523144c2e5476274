"""Tables of rows read a block at a time, so that each block stays in a core's cache."""

from ._blocks import WORTH_IT as WORTH_IT
from ._blocks import blocks_of as blocks_of
from ._blocks import by_rows as by_rows
from ._blocks import in_numpy as in_numpy
from ._blocks import side_by_side as side_by_side
from ._blocks import softmax_of_blocks as softmax_of_blocks
from ._blocks import unrecorded as unrecorded
from ._maxima import maxima_of as maxima_of
from ._parts import PART as PART
from ._parts import Events as Events
from ._parts import Part as Part
from ._parts import Vector as Vector
from ._parts import events_of as events_of
from ._parts import vector_of as vector_of
from ._places import first_largest as first_largest
from ._places import first_largest_of as first_largest_of
from ._places import is_first_largest as is_first_largest
from ._squares import squares_of_rows as squares_of_rows
from ._whole import as_floats as as_floats
from ._whole import same_class as same_class
