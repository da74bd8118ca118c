"""What is wrong with the arguments is said before any work."""
import contextlib
import io
import json
import pathlib
import shutil
import tempfile
import unittest
from collections.abc import Iterator

from harness.plan import Plan, make

QUESTION = "which of these many words of a question tells the answer to it"


@contextlib.contextmanager
def folders() -> Iterator[pathlib.Path]:
    """A program, a model and collections: `whole`, whose rows are documents, `short` with few words, and `blank` without queries."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "lkr"
        program.write_text("#!/bin/sh\necho lkr 0.1.0\n", encoding="utf-8")
        program.chmod(0o755)
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            (folder / "model").mkdir(exist_ok=True)
            (folder / "model" / file).touch()
        for collection, questions in {"whole": [QUESTION], "short": ["ice moons", "europa"], "blank": []}.items():
            write_collection(folder / "data" / collection, questions)
        yield folder


def write_collection(folder: pathlib.Path, questions: list[str]) -> None:
    folder.mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "a", "text": "text"}) + "\n", encoding="utf-8")
    lines = (json.dumps({"_id": str(number), "text": text}) + "\n" for number, text in enumerate(questions))
    (folder / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    judgements = (f"{number}\ta\t1\n" for number, _ in enumerate(questions))
    (folder / "qrels.tsv").write_text("".join(judgements), encoding="utf-8")


def plan(folder: pathlib.Path, *arguments: str) -> Plan:
    given = {"lkr": folder / "lkr", "model": folder / "model", "data": folder / "data", "work": folder / "work"}
    paths = [text for name, path in given.items() for text in (f"--{name}", str(path))]
    chosen = () if "--collections" in arguments else ("--collections", "whole")
    return make([*paths, *chosen, *arguments], "")


@unittest.skipIf(shutil.which("wrk") is None, "wrk is not installed")
class Planning(unittest.TestCase):
    def test_a_plan_has_the_cases_of_all_options_in_order(self) -> None:
        with folders() as folder:
            found = plan(folder, "--systems", "lkr,chroma", "--clients", "4,4,2", "--rounds", "2")
        names = [case.name for case in found.cases]
        self.assertEqual(names, [f"{name}, whole, given chunks" for name in ("lkr float32", "lkr int8", "Chroma")])
        self.assertEqual((found.clients, found.rounds), ((4, 2), 2))
        self.assertRegex(found.program.version, r"^lkr 0\.1\.0, sha256 [0-9a-f]{12}$")
        self.assertFalse(found.program.is_development)

    def test_a_development_build_is_detected(self) -> None:
        with folders() as folder:
            with (folder / "lkr").open("ab") as program:
                program.write(b"# unsafe precondition(s) violated\n")
            self.assertTrue(plan(folder).program.is_development)

    def test_each_error_is_one_line_with_status_2_and_nothing_is_made(self) -> None:
        errors = {
            ("--rounds", "0"): "argument --rounds: not a positive number: '0'",
            ("--seconds", "-1"): "argument --seconds: not a positive number: '-1'",
            ("--clients", "1,0"): "argument --clients: not a positive number: '0'",
            ("--clients", ""): "argument --clients: not a positive number: ''",
            ("--systems", "nope"): "argument --systems: unknown: 'nope'",
            ("--systems", "lkr", "--variants", "Chroma"): "--systems: no case has 'lkr' with the other options",
            ("--systems", "lkr", "--variants", "lkr int8,Chroma"): "--variants: no case has 'Chroma' with the other options",
            ("--chunkings", "own"): "no case has",
            ("--chunkings", "given,own"): "--chunkings: no case has 'own' with the other options",
            ("--collections", "nope"): "no such folder: ",
            ("--collections", "blank"): "has 1 texts and 0 judged queries",
            ("--collections", "short"): "the collection short has too few queries: 2 queries give 13 requests",
            ("--lkr", "/nope"): "no such program: /nope",
            ("--lkr", "/bin/true"): "/bin/true --version says nothing of lkr",
            ("--model", "/nope"): "no such folder: /nope",
            ("--work", "/proc/nope"): "/proc/nope",
        }
        with folders() as folder:
            for arguments, message in errors.items():
                with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()) as said:
                    with self.assertRaises(SystemExit) as ended:
                        plan(folder, *arguments)
                    self.assertEqual(ended.exception.code, 2)
                    self.assertIn(message, said.getvalue())
                    self.assertEqual(said.getvalue().count("\n"), 1)
            self.assertFalse((folder / "work").exists())


if __name__ == "__main__":
    unittest.main()
