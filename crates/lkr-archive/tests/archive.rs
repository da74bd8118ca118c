//! Complete, damaged and incomplete archives.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing test panics")]

use std::collections::BTreeMap;

use lkr_archive::{ArchiveInfo, ArchiveReader, ArchiveWriter, ErrorKind, Result};
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, PartialEq)]
struct Unpacked {
    info: ArchiveInfo,
    files: Files,
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

async fn pack(files: &Files) -> Vec<u8> {
    let mut writer = ArchiveWriter::begin(Vec::new(), &ArchiveInfo::new("lkr 1", "lmdb", 2)).await.unwrap();
    for (path, content) in files {
        writer.add(path, content.len() as u64, content.as_slice()).await.unwrap();
    }
    writer.finish().await.unwrap()
}

async fn unpack(archive: &[u8]) -> Result<Unpacked> {
    let mut reader = ArchiveReader::open(archive).await?;
    let mut files = Files::new();
    while let Some(mut entry) = reader.next().await? {
        let (path, length) = (entry.path().to_owned(), entry.length());
        let mut content = Vec::new();
        entry
            .read_to_end(&mut content)
            .await
            .map_err(|error| lkr_archive::Error::new(ErrorKind::Damaged, "read an entry", error))?;
        // A truncated entry is reported by the next call of `next`.
        assert!(content.len() as u64 <= length);
        files.insert(path, content);
    }
    Ok(Unpacked { info: reader.info().clone(), files })
}

fn some_files() -> impl Strategy<Value = Files> {
    let path = "[a-zäß月 ]{1,12}(/[a-z.]{0,140}x){0,2}";
    proptest::collection::btree_map(path, proptest::collection::vec(any::<u8>(), 0..2_000), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn archive_round_trip_preserves_all_files(files in some_files()) {
        run(async {
            prop_assert_eq!(unpack(&pack(&files).await).await.unwrap().files, files);
            Ok(())
        })?;
    }

    /// Padding between entries is not checked.
    #[test]
    fn flipped_bit_is_detected_or_changes_nothing(files in some_files(), at in any::<proptest::sample::Index>(), bit in 0u8..8) {
        run(async {
            let mut archive = pack(&files).await;
            let undamaged = unpack(&archive).await.unwrap();
            let at = at.index(archive.len());
            archive[at] ^= 1 << bit;
            if let Ok(unpacked) = unpack(&archive).await {
                prop_assert_eq!(unpacked, undamaged);
            }
            Ok(())
        })?;
    }

    /// Only the blocks of zeros after the last entry may be missing.
    #[test]
    fn truncated_archive_is_refused(files in some_files(), at in any::<proptest::sample::Index>()) {
        run(async {
            let archive = pack(&files).await;
            let at = at.index(archive.len() - 1_024);
            let error = unpack(&archive[..at]).await.unwrap_err();
            prop_assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::NotAnArchive), "{}", error);
            Ok(())
        })?;
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4_096)) {
        prop_assert!(run(unpack(&bytes)).is_err());
    }
}

#[test]
fn damaged_entry_is_named() {
    let mut archive = run(pack(&Files::from([("moons/io".to_owned(), b"volcanoes".to_vec())])));
    let at = archive.windows(9).position(|window| window == b"volcanoes").unwrap();
    archive[at] = b'V';
    let error = run(unpack(&archive)).unwrap_err();
    assert_eq!(error.to_string(), "read backup: moons/io does not match the checksum list");
}

#[test]
fn missing_entry_of_an_archive_with_several_lists_is_detected() {
    let files: Files = (0..2_500).map(|n| (format!("texts/{n:04}"), format!("{n}").into_bytes())).collect();
    let mut archive = run(pack(&files));
    assert_eq!(run(unpack(&archive)).unwrap().files, files);
    let header = archive.windows(10).position(|window| window == b"texts/1234").unwrap();
    // Removes one entry: its header and one block.
    archive.drain(header..header + 1_024);
    let error = run(unpack(&archive)).unwrap_err();
    assert_eq!(error.to_string(), "read backup: texts/1235 does not match the checksum list");
}

#[test]
fn other_data_and_later_format_versions_are_refused_differently() {
    for data in [&b""[..], b"PK\x03\x04", &[0; 4_096], b"{\"form\": 1}"] {
        assert_eq!(run(unpack(data)).unwrap_err().kind(), ErrorKind::NotAnArchive);
    }
    let archive = run(pack(&Files::new()));
    let at = archive.windows(8).position(|window| window == b"\"form\":1").unwrap();
    let mut newer = archive;
    newer[at + 7] = b'7';
    let error = run(unpack(&newer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert!(error.to_string().contains("format version 7"), "{error}");
}

#[test]
fn entry_with_a_wrong_length_or_an_invalid_path_is_refused() {
    for (path, length) in [("io", 8), ("io", 10), ("/io", 9), ("../io", 9), ("SHA256SUMS.1", 9)] {
        let added = run(async {
            let mut writer =
                ArchiveWriter::begin(Vec::new(), &ArchiveInfo::new("lkr 1", "lmdb", 2)).await.unwrap();
            writer.add(path, length, &b"volcanoes"[..]).await
        });
        assert_eq!(added.unwrap_err().kind(), ErrorKind::Invalid, "{path} {length}");
    }
}

#[test]
fn unfinished_archive_is_refused() {
    let archive = run(async {
        let mut to = Vec::new();
        let mut writer = ArchiveWriter::begin(&mut to, &ArchiveInfo::new("lkr 1", "lmdb", 2)).await.unwrap();
        writer.add("io", 9, &b"volcanoes"[..]).await.unwrap();
        drop(writer);
        to
    });
    assert_eq!(run(unpack(&archive)).unwrap_err().to_string(), "read backup: the archive is incomplete");
}

#[test]
fn archive_without_a_checksum_list_or_with_an_endless_path_is_refused_before_it_takes_memory() {
    let files: Files = (0..1_100).map(|n| (format!("texts/{n:04}"), format!("{n}").into_bytes())).collect();
    let archive = run(pack(&files));
    let list = archive.windows(12).position(|window| window == b"SHA256SUMS.1").unwrap();
    let next = archive[list..].windows(10).position(|window| window == b"texts/0999").unwrap();
    let without_list = [&archive[..list], &archive[list + next..]].concat();
    let error = run(unpack(&without_list)).unwrap_err();
    assert_eq!(error.to_string(), "read backup: the checksum list before texts/0999 is missing");

    let mut header = tokio_tar::Header::new_gnu();
    header.set_entry_type(tokio_tar::EntryType::GNULongName);
    header.set_path("././@LongLink").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    let with_path = [&archive[..list], header.as_bytes(), &[b'a'; 100_000]].concat();
    let error = run(unpack(&with_path)).unwrap_err();
    assert_eq!(error.to_string(), "read backup: the header of an entry is longer than 16384 bytes");
}
