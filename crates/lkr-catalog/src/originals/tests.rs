use std::io::Write;

use lkr_domain::{DocId, Original};
use time::macros::datetime;

use super::*;
use crate::original_path::{MAX_NAME_BYTES, original_path, stored_name};

async fn put(originals: &Originals, path: &str, bytes: &[u8]) -> Result<()> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    originals.put(path, &file, bytes.len() as u64).await.map(drop)
}

async fn read(original: &StoredOriginal, range: Range<u64>) -> Vec<u8> {
    let parts: Vec<Bytes> = original.read(range).await.unwrap().try_collect().await.unwrap();
    parts.concat()
}

#[test]
fn lesson_25_file_names_are_reduced_to_safe_names() {
    for (name, stored) in [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\temp\\a b.txt", "a b.txt"),
        ("..", "__"),
        (".htaccess.txt", "_htaccess.txt"),
        ("...x.txt", "___x.txt"),
        ("a..md", "a..md"),
        ("..md", "_.md"),
        ("....md", "___.md"),
        (".md", "_md"),
        ("...", "___"),
        ("a\0b\r\nc.txt", "a_b__c.txt"),
        ("invoice\u{202e}fdp.txt", "invoice_fdp.txt"),
        ("Übung #1 [neu] 50%?.txt", "Übung #1 [neu] 50%?.txt"),
        ("dir/", "unnamed"),
        ("", "unnamed"),
    ] {
        assert_eq!(stored_name(name), stored, "{name:?}");
    }
    let long = format!("{}.docx", "é".repeat(300));
    let stored = stored_name(&long);
    assert!(stored.len() <= MAX_NAME_BYTES && stored.ends_with("é.docx"), "{stored}");
    assert!(stored_name(&"x.".repeat(300)).len() <= MAX_NAME_BYTES);
}

#[test]
fn original_path_contains_the_utc_year_and_month() {
    let id: DocId = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let path = original_path(id, "a/b.txt", datetime!(2026-12-31 23:30 -2));
    assert_eq!(path, "2027/01/0123456789abcdef0123456789abcdef_b.txt");
}

#[tokio::test]
async fn stored_file_is_read_completely_and_in_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let originals = Originals::in_folder(folder.path().join("uploads"));
    assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
    let name = "2026/11/0_Übung #1 [neu] 50%?.txt";
    put(&originals, name, b"0123456789").await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("uploads").join(name)).unwrap(), b"0123456789");
    let original = originals.get(name).await.unwrap().unwrap();
    assert_eq!(original.size_bytes, 10);
    assert_eq!(read(&original, 0..10).await, b"0123456789");
    assert_eq!(read(&original, 3..5).await, b"34");
    originals.delete(name).await.unwrap();
    originals.delete(name).await.unwrap();
    assert!(originals.get(name).await.unwrap().is_none());
}

/// The first ten bytes of a file of `length` bytes whose last byte was changed, or removed, after it was stored.
async fn part_of_damaged(length: usize, is_shorter: bool) -> Result<Vec<u8>> {
    const PATH: &str = "2026/11/a.txt";
    let folder = tempfile::tempdir().unwrap();
    let originals = Originals::in_folder(folder.path().to_owned());
    let (mut bytes, mut file) = (vec![b'x'; length], tempfile::tempfile().unwrap());
    file.write_all(&bytes).unwrap();
    let sha256 = originals.put(PATH, &file, length as u64).await.unwrap();
    let (path, file_name) = (PATH.to_owned(), "a.txt".to_owned());
    let original = Original { path, file_name, size_bytes: length as u64, sha256: Some(sha256) };
    let stored = originals.get(PATH).await.unwrap().unwrap();
    let part: Vec<Bytes> = stored.read_part(2..4, &original).await.unwrap().try_collect().await.unwrap();
    assert_eq!(part.concat(), b"xx");
    bytes.truncate(length - 1);
    bytes.extend((!is_shorter).then_some(b'y'));
    std::fs::write(folder.path().join(PATH), &bytes).unwrap();
    let stored = originals.get(PATH).await.unwrap().unwrap();
    let part: Vec<Bytes> = stored.read_part(0..10, &original).await?.try_collect().await.unwrap();
    Ok(part.concat())
}

#[tokio::test]
async fn part_of_a_damaged_file_is_served_only_if_the_file_is_large() {
    let largest = usize::try_from(MAX_CHECKED_BYTES).unwrap();
    for (length, is_shorter) in [(100, false), (largest, false), (largest + 2, true)] {
        let error = part_of_damaged(length, is_shorter).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}: {error}");
    }
    assert_eq!(part_of_damaged(largest + 1, false).await.unwrap(), [b'x'; 10]);
}

#[tokio::test]
async fn delete_removes_partial_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let originals = Originals::in_folder(folder.path().to_owned());
    let month = folder.path().join("2026/11");
    std::fs::create_dir_all(&month).unwrap();
    for name in ["a.txt#1", "a.txt#x", "a.txt#", "b.txt#1"] {
        std::fs::write(month.join(name), "half").unwrap();
    }
    originals.delete("2026/11/a.txt").await.unwrap();
    let mut left: Vec<_> = std::fs::read_dir(month).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.txt#", "a.txt#x", "b.txt#1"]);
}

#[cfg(unix)]
#[tokio::test]
async fn lesson_25_links_are_not_followed() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let originals = Originals::in_folder(folder.path().to_owned());
    std::fs::write(elsewhere.path().join("secret.txt"), "secret").unwrap();
    std::fs::create_dir(folder.path().join("2026")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("2026/11")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("secret.txt"), folder.path().join("link.txt")).unwrap();
    for path in ["2026/11/secret.txt", "link.txt", "../secret.txt", "2026/../link.txt", ""] {
        assert!(originals.get(path).await.unwrap().is_none(), "{path}");
        originals.delete(path).await.unwrap();
    }
    assert!(put(&originals, "2026/11/new.txt", b"x").await.is_err());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn put_below_a_file_returns_a_retryable_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("2026")).unwrap();
    std::fs::write(folder.path().join("2026/11"), "a file").unwrap();
    let originals = Originals::in_folder(folder.path().to_owned());
    for length in [1, 6 * 1024 * 1024] {
        let error = put(&originals, "2026/11/a.txt", &vec![7; length]).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
    assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
}

#[cfg(unix)]
#[tokio::test]
async fn get_of_a_folder_returns_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("2026/11/a.txt")).unwrap();
    let originals = Originals::in_folder(folder.path().to_owned());
    assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
}

#[tokio::test]
async fn put_without_a_creatable_folder_returns_a_retryable_error() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("file");
    std::fs::write(&taken, "x").unwrap();
    let originals = Originals::in_folder(taken);
    let error = put(&originals, "2026/11/a.txt", b"x").await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}
