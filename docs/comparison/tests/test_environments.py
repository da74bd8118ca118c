"""Files of environments."""
import pathlib
import tempfile
import unittest

from harness.environments import separate_nltk_data, size


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


if __name__ == "__main__":
    unittest.main()
