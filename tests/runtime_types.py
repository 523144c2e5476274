"""The checker that the tests lay over every function of the package."""

from beartype import BeartypeConf, beartype

# As static checkers do, let an int stand where a float is expected.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
