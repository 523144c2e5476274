"""Which of Lightning's two packages somebody uses.

It comes as `lightning.pytorch` and `pytorch_lightning`, whose classes do not mix. Nothing of ours
imports either before it has seen which one you use.
"""

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def package_of(owner: object) -> str:
    """The package that a module or a trainer is from."""
    for kind in type(owner).__mro__:
        for package in PACKAGES:
            if f"{kind.__module__}.".startswith(f"{package}."):
                return package
    raise TypeError(
        "owner must be a LightningModule or a Trainer of lightning.pytorch or pytorch_lightning; "
        f"got {type(owner).__name__}."
    )
