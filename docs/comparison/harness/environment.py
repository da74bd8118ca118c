"""The environment variables of the compared programs."""
import os
from collections.abc import Collection

THREADS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Settings that would slow numerical libraries down. Each program uses as many threads as it likes."""

BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
"""Settings that would keep Python from writing compiled modules beside their sources or from finding them there. A system would
compile everything again at each start."""

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HAYHOOKS_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
}
"""Nothing that the programs do needs a network."""


def environment(**added: str) -> dict[str, str]:
    """Of the compared programs."""
    return without(THREADS + BYTECODE) | OFFLINE | added


def without(removed: Collection[str]) -> dict[str, str]:
    """The environment of this process without some variables."""
    return {name: value for name, value in os.environ.items() if name not in removed}
