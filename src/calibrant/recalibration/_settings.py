"""Settings as scikit-learn knows them: the arguments of `__init__`."""

from inspect import Parameter, signature
from typing import Any, TypeVar

from ..criteria import name_of

Owner = TypeVar("Owner", bound="Settings")


class Settings:
    """What `clone`, grid searches and `repr` need of an object whose `__init__` only stores."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name."""
        return {name: getattr(self, name) for name in self._usual()}

    def set_params(self: Owner, **settings: Any) -> Owner:
        """Change settings; what was learnt stays until the next `fit`."""
        known = self._usual()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; got {value!r}. "
                    f"Settings are: {', '.join(known) or 'none'}."
                )
            setattr(self, name, value)
        return self

    @classmethod
    def _usual(cls) -> dict[str, Any]:
        """The settings and what they are when nothing is said."""
        named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        found = signature(cls).parameters.values()
        return {p.name: p.default for p in found if p.kind in named}

    def __repr__(self) -> str:
        usual = self._usual()
        unusual = [
            f"{name}={name_of(value) if callable(value) else repr(value)}"
            for name, value in self.get_params(deep=False).items()
            if value is not usual[name] and value != usual[name]
        ]
        return f"{type(self).__name__}({', '.join(unusual)})"
