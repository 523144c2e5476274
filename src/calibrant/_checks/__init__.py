"""What predictions must look like, and the sentence a person reads when they do not."""

from ._events import check_events as check_events
from ._labels import check_groups as check_groups
from ._labels import check_labels as check_labels
from ._labels import check_targets as check_targets
from ._labels import check_weights as check_weights
from ._logits import check_logits as check_logits
from ._logits import check_shapes as check_shapes
from ._logits import check_table as check_table
from ._nearest import did_you_mean as did_you_mean
from ._probabilities import ROUNDED as ROUNDED
from ._probabilities import check_chances as check_chances
from ._probabilities import check_not_chances as check_not_chances
from ._probabilities import check_not_probabilities as check_not_probabilities
from ._probabilities import check_probabilities as check_probabilities
from ._probabilities import check_probability_table as check_probability_table
from ._probabilities import check_sums as check_sums
from ._probabilities import slack as slack
from ._settings import check_bins as check_bins
from ._settings import check_callable as check_callable
from ._settings import check_norm as check_norm
from ._settings import check_positive as check_positive
from ._tensors import HALF as HALF
from ._tensors import check_tensor as check_tensor
from ._tensors import is_readable as is_readable
from ._tensors import is_transformed as is_transformed
from ._tensors import is_transforming as is_transforming
