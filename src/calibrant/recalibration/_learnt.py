"""What a fit leaves behind: buffers, which every way of keeping a module keeps."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._checks import widest
from ._form import Form


class Learnt(nn.Module):
    """A module whose state is what it has learnt, and nothing before that.

    A fresh instance takes the state of a fitted one: it makes room for whatever it is given.
    """

    learnt: ClassVar[tuple[str, ...]] = ()

    smallest_: Tensor | None

    _form: Form | None = None

    def _learn(self, **found: Tensor | float | None) -> None:
        """Keep what was learnt, in double precision where it is not whole numbers."""
        strange = set(found) - set(self.learnt)
        if strange:
            raise TypeError(f"{type(self).__name__}.learnt does not name {sorted(strange)}.")
        for name in self.learnt:
            self.register_buffer(name, _kept(found.get(name)))

    def _take_form(self, form: Form) -> None:
        """Keep the layout of the logits; so do the parts that learnt from them too."""
        self.register_buffer("form_", form.as_tensor())
        self.register_buffer("smallest_", _kept(form.smallest))
        self._form = form
        for part in self.children():
            if isinstance(part, Learnt):
                part._take_form(form)

    def _fitted_form(self) -> Form:
        """The layout of the logits of the fit, or a sentence where there was none."""
        if self._form is None:
            raise ValueError(
                f"{type(self).__name__} must be fitted before it is used; got one that has learnt "
                "nothing. Call fit(logits, labels) or load_state_dict first."
            )
        return self._form

    def __sklearn_is_fitted__(self) -> bool:
        return self._form is not None

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *rest: Any, **more: Any
    ) -> None:
        # An instance that has learnt nothing, or something of another shape, makes room first.
        fitted = prefix + "form_" in state_dict
        if fitted:
            place = getattr(self, "form_", state_dict[prefix + "form_"]).device
            for name in (*self.learnt, "form_", "smallest_"):
                value = state_dict.get(prefix + name)
                room = None if value is None else torch.empty_like(value, device=place)
                self.register_buffer(name, room)
        super()._load_from_state_dict(state_dict, prefix, *rest, **more)
        if fitted:
            self._form = Form.of(self.get_buffer("form_"), self.smallest_)


def _kept(found: Tensor | float | None) -> Tensor | None:
    if found is None:
        return None
    tensor = torch.tensor(found, dtype=torch.float64) if isinstance(found, float) else found
    tensor = tensor.detach()
    return tensor.to(widest(tensor.device)) if tensor.is_floating_point() else tensor
