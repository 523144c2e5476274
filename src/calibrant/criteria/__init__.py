"""A criterion turns predictions into one number; lifts make one from another."""

from ._grouped import by_group as by_group
from ._grouped import rooted as rooted
from ._lifts import BY_CLASS as BY_CLASS
from ._lifts import BY_PARTS as BY_PARTS
from ._lifts import Criterion as Criterion
from ._lifts import Measure as Measure
from ._lifts import class_wise as class_wise
from ._lifts import name_of as name_of
from ._lifts import per_class as per_class
from ._lifts import top_label as top_label
from ._ranks import across_ranks as across_ranks
from ._roots import root as root
