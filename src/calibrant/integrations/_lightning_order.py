"""Where a class has its training step, which decides whether calibration is added to it."""

from ._lightning_package import PACKAGES


def check_order(cls: type, adding: type) -> None:
    """The step that is added to must be found after the class that adds, in the order of Python.

    - `cls`: a new class, one of whose bases is `adding`.
    """
    place = cls.__mro__.index(adding)
    for kind in cls.__mro__[:place]:
        if not issubclass(kind, adding) and "training_step" in vars(kind):
            raise TypeError(
                f"{adding.__name__} must stand before the module it adds to; got {cls.__name__} "
                f"with {kind.__name__} before it. Write "
                f"class {cls.__name__}({adding.__name__}, {kind.__name__})."
            )
    after = [kind for kind in cls.__mro__[place + 1 :] if "training_step" in vars(kind)]
    if "training_step" in vars(cls) and all(kind.__module__.startswith(PACKAGES) for kind in after):
        raise TypeError(
            f"{adding.__name__} must stand before the module it adds to; got {cls.__name__} with "
            "a training_step of its own, which replaces the calibrated one. Write the step in a "
            f"module without {adding.__name__}, and class {cls.__name__}({adding.__name__}, "
            "ThatModule)."
        )
