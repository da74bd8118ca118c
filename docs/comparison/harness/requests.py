"""Requests of which no two are alike, so that no cache answers."""
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP = 3
"""The longest run of spaces between two words, if that gives enough queries."""
LONGEST_GAP = 12
NOISE = 1e-5
"""The most that is added to a number of a given vector. Its length is 1."""
NOISY = 8
"""How many numbers of a vector get noise."""
SEED = 1


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: str = ""


def unlike(queries: Sequence[str], needed: int) -> Iterator[str]:
    """Queries of which no two are alike: the numbers of spaces between words differ, which no ranking reads.

    Raises ValueError if there are fewer than `needed`.
    """
    words = list(dict.fromkeys(tuple(query.split()) for query in queries))
    gap = GAP
    while gap < LONGEST_GAP and spacings(words, gap) < needed:
        gap += 1
    found = spacings(words, gap)
    if found < needed:
        raise ValueError(f"{len(words)} queries give {found:,} requests of which no two are alike; {needed:,} are needed")
    turns = itertools.zip_longest(*(spaced(query, gap) for query in words))
    return (query for turn in turns for query in turn if query is not None)


def spacings(queries: Sequence[Sequence[str]], gap: int) -> int:
    return sum(gap ** (len(words) - 1) for words in queries if words)


def spaced(words: Sequence[str], gap: int) -> Iterator[str]:
    """The query with each combination of runs of spaces between its words."""
    if not words:
        return
    for gaps in itertools.product(range(1, gap + 1), repeat=len(words) - 1):
        yield "".join(word + " " * gap for word, gap in zip(words, (*gaps, 0), strict=True))


def unlike_vectors(vectors: Sequence[Sequence[float]]) -> Iterator[list[float]]:
    """The vectors in turn without end, with noise that changes no ranking by more than that of near ties."""
    noise = random.Random(SEED)
    for vector in itertools.cycle(vectors):
        yield [value + noise.uniform(-NOISE, NOISE) for value in vector[:NOISY]] + list(vector[NOISY:])
