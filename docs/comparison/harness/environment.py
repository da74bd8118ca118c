"""The environment variables of the compared programs."""
import os

REMOVED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Settings that would slow numerical libraries down. Each program uses as many threads as it likes."""

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
    kept = {name: value for name, value in os.environ.items() if name not in REMOVED}
    return kept | OFFLINE | added
