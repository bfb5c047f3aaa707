"""The registry of rules against what the branches post."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_cases import random_context

import tileproof
from tileproof.models.algebra import IntAlgebra
from tileproof.models.branches import BRANCH_OF
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.models.rules import PROFILES, RULES, rule_info

_SOURCES = Path(tileproof.__file__).parent / "models"


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_of_the_registry_is_posted_somewhere(rule: str) -> None:
    """By its whole id, or by the part in front of an axis (``cover.slice_{x}``)."""
    text = "\n".join(path.read_text() for path in _SOURCES.rglob("*.py") if path.name != "rules.py")
    stem = rule.rsplit("_", 1)[0]
    assert f'"{rule}"' in text or f'f"{stem}_{{' in text or f'f"{rule.partition(".")[0]}.{{' in text


@pytest.mark.parametrize("branch", BRANCHES)
def test_every_posted_rule_is_in_the_registry_with_kind_and_profile(branch: BranchName) -> None:
    for seed in range(30):
        ctx = random_context(branch, seed)
        alg = IntAlgebra()
        BRANCH_OF[branch].entry(alg, ctx)
        if any(not check.holds for check in alg.checks):
            continue
        for structure in BRANCH_OF[branch].structures(ctx, complete=True)[:12]:
            values = {d.name: d.domain()[0] for d in structure.decisions}
            BRANCH_OF[branch].formula(alg, ctx, {**structure.constants, **values})
        for check in alg.checks:
            info = rule_info(check.rule)
            assert info.kind in ("entry", "cap", "align", "cover", "step", "buffer", "policy")
            if info.kind == "policy":
                assert info.profile == ctx.profile
            else:
                assert info.profile is None


def test_policy_rules_name_their_profile() -> None:
    for rule, info in RULES.items():
        assert (info.kind == "policy") == (info.profile is not None), rule
        assert info.profile in (None, *PROFILES)
        assert info.text
        if rule.startswith("policy.source_"):
            assert info.profile == "source"
