"""Files of environments."""
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from harness import environments
from harness.environment import environment
from harness.environments import Environments, installing_environment, separate_nltk_data, size, version


class Files(unittest.TestCase):
    def test_size_is_that_of_all_files_below_a_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "a").mkdir()
            (path / "a" / "b").write_bytes(b"12345")
            (path / "c").write_bytes(b"678")
            self.assertEqual(size(path), 8)

    def test_data_of_nltk_gets_files_of_their_own(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder, "nltk_cache", "corpora", "words")
            data.parent.mkdir(parents=True)
            data.write_text("a", encoding="utf-8")
            pathlib.Path(folder, "shared").hardlink_to(data)
            separate_nltk_data(pathlib.Path(folder))
            self.assertEqual((data.stat().st_nlink, data.read_text(encoding="utf-8")), (1, "a"))


class Bytecode(unittest.TestCase):
    def test_neither_installations_nor_systems_inherit_that_no_bytecode_is_written_or_read(self) -> None:
        inherited = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/x", "OMP_NUM_THREADS": "1", "OTHER": "2"}
        with mock.patch.dict(os.environ, inherited):
            self.assertEqual(inherited.keys() & environment().keys(), {"OTHER"})
            self.assertEqual(inherited.keys() & installing_environment().keys(), {"OMP_NUM_THREADS", "OTHER"})

    def test_an_installation_compiles_modules_and_is_made_again_if_an_older_one_did_not(self) -> None:
        commands: list[tuple[str, ...]] = []

        def made(*command: str | pathlib.Path) -> None:
            commands.append(tuple(map(str, command)))
            if "venv" in command:
                pathlib.Path(command[-1], "lib", "python3.11", "site-packages").mkdir(parents=True)

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(environments, "run", made):
            of_system = pathlib.Path(folder, "chroma")
            of_system.mkdir()
            (of_system / "installed.txt").write_text(environments.requirements("chroma"), encoding="utf-8")
            for _ in range(2):
                Environments(pathlib.Path(folder)).make("chroma")
                (pathlib.Path(folder) / "uv" / "bin").mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / "uv" / "bin" / "uv").touch()
        installing = [command for command in commands if command[1:3] == ("pip", "install")]
        self.assertEqual(["--compile-bytecode" in command for command in installing], [True])

    def test_version_names_the_chosen_packages_and_depends_on_all(self) -> None:
        self.assertRegex(version("chroma"), r"^chromadb==[\d.]+, sentence-transformers==[\d.]+; all packages: [0-9a-f]{12}$")


if __name__ == "__main__":
    unittest.main()
