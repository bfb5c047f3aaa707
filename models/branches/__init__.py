"""The six implementation branches."""

from typing import Final

from ..plan import BRANCHES, BranchName
from .asw_basic import AswBasic
from .base import Branch, Decision, Structure
from .iter_batch import IterBatch
from .merge_batch import MergeBatch
from .special import Special
from .stream_k import StreamK
from .to_matmul import ToMatmul

_ALL: Final = (Special(), ToMatmul(), IterBatch(), MergeBatch(), AswBasic(), StreamK())


def get_branch(name: BranchName) -> Branch:
    """The branch of that name."""
    return BRANCH_OF[name]


BRANCH_OF: Final[dict[BranchName, Branch]] = {branch.name: branch for branch in _ALL}

__all__ = ["BRANCHES", "BRANCH_OF", "Branch", "Decision", "Structure", "get_branch"]
