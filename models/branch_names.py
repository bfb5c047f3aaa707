"""Names of the branches, in the order of tables and of preference among equally fast ones; they cost no import."""

from collections.abc import Sequence
from typing import Final

#: A branch is the ``BRANCH`` of the module of its name in ``branches``.
names: Final = ["special", "to_matmul", "iter_batch", "merge_batch", "asw_basic", "stream_k"]

BRANCHES: Final[Sequence[str]] = names
