use std::fs;

use super::node::HEADER;
use super::*;
use crate::env::{Kb, Map};

/// Writes a file with rows of all lengths and with freed pages, and returns its rows.
fn made(dir: &Path, rows: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let kb = Kb::open(dir, Map::default()).unwrap();
    let row = |n: u32| (n.to_be_bytes().repeat(3), vec![n as u8; (n as usize * 37) % 9_000]);
    for batch in [0..rows, rows / 4..rows / 2, 0..rows / 8] {
        let mut txn = kb.write_txn().unwrap();
        for n in batch {
            let (key, value) = row(n);
            kb.tables.state.put(&mut txn, &key, &value).unwrap();
        }
        for n in (rows / 2..rows).step_by(7) {
            kb.tables.state.delete(&mut txn, &row(n).0).unwrap();
        }
        txn.commit().unwrap();
    }
    let txn = kb.snapshot().unwrap();
    let stored = kb.tables.state.iter(&txn).unwrap();
    stored.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

#[test]
fn undamaged_file_has_no_findings() {
    for rows in [0, 1, 100, 5_000] {
        let dir = tempfile::tempdir().unwrap();
        let rows = made(dir.path(), rows);
        let mut walked = Vec::new();
        let findings = walk(&dir.path().join("data.mdb"), &mut |row| {
            if row.table == "state" {
                walked.push((row.key.to_vec(), row.value.to_vec()));
            }
            Ok(())
        });
        assert_eq!(findings.unwrap(), Vec::<String>::new());
        assert_eq!(walked, rows);
    }
}

/// LMDB keeps the pages of a long value if a shorter one replaces it.
#[test]
fn overflow_value_with_surplus_pages_has_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(dir.path(), Map::default()).unwrap();
    for length in [20_000, 5_000] {
        let mut txn = kb.write_txn().unwrap();
        kb.tables.state.put(&mut txn, b"key", &vec![7; 20_000]).unwrap();
        kb.tables.state.put(&mut txn, b"key", &vec![8; length]).unwrap();
        txn.commit().unwrap();
    }
    kb.prepare_for_closing().wait();
    let mut lengths = Vec::new();
    let findings = walk(&dir.path().join("data.mdb"), &mut |row| {
        lengths.extend((row.table == "state").then_some(row.value.len()));
        Ok(())
    });
    assert_eq!(findings.unwrap(), Vec::<String>::new());
    assert_eq!(lengths, [5_000]);
}

#[test]
fn overflowing_last_page_number_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path(), 10);
    let path = dir.path().join("data.mdb");
    let mut bytes = fs::read(&path).unwrap();
    for meta in [0, 4_096] {
        bytes[meta + HEADER + 120..][..8].fill(u8::MAX);
    }
    fs::write(&path, bytes).unwrap();
    assert!(!check(&path).unwrap().is_empty());
}

#[test]
fn truncated_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path(), 2_000);
    let path = dir.path().join("data.mdb");
    let length = fs::metadata(&path).unwrap().len();
    for share in (0..8).rev() {
        File::options().write(true).open(&path).unwrap().set_len(length * share / 8 + share * 100).unwrap();
        let findings = check(&path).unwrap();
        assert_eq!(findings.is_empty(), share == 0, "{share}: {findings:?}");
    }
    assert!(check(&dir.path().join("absent")).unwrap().is_empty());
}

/// A flip that is not reported lies in a value, in a key that keeps its position, or in unused bytes. LMDB then reads the
/// file, and the number of rows is unchanged.
#[test]
fn unreported_flips_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let rows = made(dir.path(), 1_500).len();
    let path = dir.path().join("data.mdb");
    let file_bytes = fs::read(&path).unwrap();
    let mut reported = 0;
    for n in 0..600_u64 {
        let mut bytes = file_bytes.clone();
        // Headers and nodes of all pages in turn, where damage matters most.
        let (page, within) = (n * 7_919 % (file_bytes.len() as u64 / 4_096), n * 13 % 64);
        let at = (page * 4_096 + within) as usize;
        bytes[at] ^= 1 << (n % 8);
        fs::write(&path, &bytes).unwrap();
        if check(&path).unwrap().is_empty() {
            let kb = Kb::inspect(dir.path(), Map::default()).unwrap();
            let txn = kb.snapshot().unwrap();
            assert_eq!(kb.tables.state.iter(&txn).unwrap().filter(|row| row.is_ok()).count(), rows, "{at}");
            drop(txn);
            kb.prepare_for_closing().wait();
        } else {
            reported += 1;
        }
    }
    assert!((20..550).contains(&reported), "{reported}");
}
