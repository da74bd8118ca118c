"""The search of the Haystack comparison as a route of Hayhooks: POST /search/run."""
import os
import pathlib

from hayhooks import BasePipelineWrapper

from harness.systems.haystack_system import Haystack


class PipelineWrapper(BasePipelineWrapper):  # type: ignore[misc]
    def setup(self) -> None:
        model, store = (pathlib.Path(os.environ[f"COMPARISON_{name}"]) for name in ("MODEL", "STORE"))
        self.system = Haystack(model, store, hybrid=os.environ["COMPARISON_HYBRID"] == "1")
        self.system.open()
        self.pipeline = self.system.pipeline

    def run_api(self, query: str, limit: int) -> list[dict[str, object]]:
        """Answers with the best chunks, their texts and their scores."""
        found = self.system.retrieve(query, limit)
        return [{"id": document.meta["chunk"], "text": document.content, "score": document.score} for document in found]
