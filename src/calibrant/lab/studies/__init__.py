"""One value per published table or figure, and the name a command gives it."""

from .._study import Study
from .esd import STUDIES as _esd
from .meta import STUDIES as _meta
from .ours import STUDIES as _ours
from .soft import STUDIES as _soft
from .tabular import STUDIES as _tabular
from .texts import STUDIES as _texts

STUDIES: dict[str, Study] = {**_esd, **_soft, **_meta, **_ours, **_tabular, **_texts}
"""Every study by name. They are part of the package so that an installed one can run them."""
