"""Measures of rankings and of repeated runs."""
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


def ndcg(ranking: Sequence[str], gains: Mapping[str, float], depth: int = 10) -> float:
    """nDCG with linear gains, as trec_eval computes it. Each item of the ranking counts once."""
    found = [gains.get(item, 0.0) for item in distinct(ranking)[:depth]]
    ideal = sorted(gains.values(), reverse=True)[:depth]
    best = discounted(ideal)
    return discounted(found) / best if best > 0.0 else 0.0


def discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def distinct(items: Iterable[Item]) -> list[Item]:
    """The items without repetitions, in the order of their first appearance."""
    return list(dict.fromkeys(items))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
