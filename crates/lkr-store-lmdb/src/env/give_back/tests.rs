use std::{collections::BTreeMap, fs};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    env::{Kb, Map, Snapshot},
    page_check,
};

type Rows = BTreeMap<u16, Vec<u8>>;

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    /// Writes values of these lengths; 0 deletes.
    Write(Vec<(u16, usize)>),
    DeleteAll,
    Read,
    /// Drops one of the readers.
    Forget(usize),
    GiveBack,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => vec((0..200_u16, prop_oneof![1 => Just(0), 3 => 1..300_usize, 1 => 2_000..20_000_usize]), 1..40)
            .prop_map(Step::Write),
        1 => Just(Step::DeleteAll),
        2 => Just(Step::Read),
        2 => any::<usize>().prop_map(Step::Forget),
        3 => Just(Step::GiveBack),
    ]
}

fn opened(dir: &std::path::Path) -> Kb {
    Kb::open(dir, Map::default()).unwrap()
}

fn write(kb: &Kb, rows: &mut Rows, changes: impl IntoIterator<Item = (u16, usize)>) {
    let mut txn = kb.write_txn().unwrap();
    for (key, length) in changes {
        if length == 0 {
            kb.tables.state.delete(&mut txn, &key.to_be_bytes()).unwrap();
            rows.remove(&key);
        } else {
            let value = (0..length).map(|at| (at * usize::from(key) + length) as u8).collect::<Vec<_>>();
            kb.tables.state.put(&mut txn, &key.to_be_bytes(), &value).unwrap();
            rows.insert(key, value);
        }
    }
    txn.commit().unwrap();
}

fn rows_of(kb: &Kb, snapshot: &Snapshot) -> Rows {
    let rows = kb.tables.state.iter(snapshot).unwrap().map(Result::unwrap);
    rows.map(|(key, value)| (u16::from_be_bytes(key.try_into().unwrap()), value.to_vec())).collect()
}

/// Whether the file system of a folder has no holes, which is a visible skip.
fn has_no_holes(dir: &std::path::Path) -> bool {
    let path = dir.join("probe");
    fs::write(&path, [1; 8_192]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let punched = punch_hole(&file, 0, 4_096);
    if punched.is_err() {
        lkr_test_support::skip(&format!("the file system of {} has no holes", dir.display()));
    }
    punched.is_err()
}

fn give_all_back(kb: &Kb) -> u64 {
    let (mut next, mut bytes) = (Some(0), 0);
    while let Some(from) = next {
        let given = kb.give_back(0, from).unwrap().expect("a file system with holes");
        (next, bytes) = (given.next, bytes + given.bytes);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every reader keeps reading what it found, whatever is written and given back meanwhile, and the file stays whole.
    #[test]
    fn no_reader_and_no_later_state_misses_a_page(steps in vec(step(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        if has_no_holes(dir.path()) {
            return Ok(());
        }
        let kb = opened(dir.path());
        let (mut rows, mut readers) = (Rows::new(), Vec::new());
        for step in steps {
            match step {
                Step::Write(changes) => write(&kb, &mut rows, changes),
                Step::DeleteAll => {
                    let all: Vec<_> = rows.keys().map(|key| (*key, 0)).collect();
                    write(&kb, &mut rows, all);
                }
                Step::Read => readers.push((kb.snapshot().unwrap(), rows.clone())),
                Step::Forget(at) if !readers.is_empty() => drop(readers.swap_remove(at % readers.len())),
                Step::Forget(_) => {}
                Step::GiveBack => {
                    give_all_back(&kb);
                    for (snapshot, found) in &readers {
                        prop_assert_eq!(&rows_of(&kb, snapshot), found);
                    }
                }
            }
        }
        give_all_back(&kb);
        drop(readers);
        kb.prepare_for_closing().wait();
        prop_assert_eq!(page_check::check(&dir.path().join(DATA)).unwrap(), Vec::<String>::new());
        let kb = opened(dir.path());
        prop_assert_eq!(rows_of(&kb, &kb.snapshot().unwrap()), rows);
    }
}

#[test]
fn deleted_rows_leave_no_blocks() {
    let dir = tempfile::tempdir().unwrap();
    if has_no_holes(dir.path()) {
        return;
    }
    let (kb, mut rows) = (opened(dir.path()), Rows::new());
    let file = File::open(dir.path().join(DATA)).unwrap();
    let fill = |kb: &Kb, rows: &mut Rows| write(kb, rows, (0..4_000).map(|key| (key, 3_000)));
    fill(&kb, &mut rows);
    let full = allocated(&file).unwrap();
    assert!(full > 12_000_000, "{full}");
    assert_eq!(give_all_back(&kb), 0, "nothing but spare pages is free");
    write(&kb, &mut rows, (0..4_000).map(|key| (key, 0)));
    // LMDB itself does not reuse pages that the state before the last one contains.
    write(&kb, &mut rows, [(7, 10)]);
    let given = give_all_back(&kb);
    let (left, length) = (allocated(&file).unwrap(), fs::metadata(dir.path().join(DATA)).unwrap().len());
    assert!(given > 12_000_000 && left < 500_000, "{given} given back, {left} left");
    assert!(length > 12_000_000, "the file keeps its length: {length}");
    assert_eq!(give_all_back(&kb), 0, "what was given back is not given twice");
    fill(&kb, &mut rows);
    assert_eq!(rows_of(&kb, &kb.snapshot().unwrap()), rows);
    assert!(fs::metadata(dir.path().join(DATA)).unwrap().len() <= length * 11 / 10);
}

#[test]
fn spare_pages_are_kept_for_later_writes() {
    let dir = tempfile::tempdir().unwrap();
    if has_no_holes(dir.path()) {
        return;
    }
    let (kb, mut rows) = (opened(dir.path()), Rows::new());
    write(&kb, &mut rows, (0..1_000).map(|key| (key, 3_000)));
    write(&kb, &mut rows, (0..1_000).map(|key| (key, 0)));
    write(&kb, &mut rows, [(7, 10)]);
    let kept = kb.give_back(64 << 20, 0).unwrap().unwrap();
    assert_eq!(kept, GivenBack::default());
    let given = kb.give_back(1 << 20, 0).unwrap().unwrap();
    assert!(given.bytes > 2_000_000, "{given:?}");
}

/// Reading a long list of free pages takes longer than a slice.
#[test]
fn slices_that_are_too_short_reach_the_last_page() {
    let dir = tempfile::tempdir().unwrap();
    if has_no_holes(dir.path()) {
        return;
    }
    let (kb, mut rows) = (opened(dir.path()), Rows::new());
    write(&kb, &mut rows, (0..2_000).map(|key| (key, 3_000)));
    write(&kb, &mut rows, (0..2_000).step_by(2).map(|key| (key, 0)));
    write(&kb, &mut rows, [(7, 10)]);
    let (mut next, mut bytes) = (Some(0), 0);
    while let Some(from) = next {
        let given = punch(&kb.env, &kb.readers, 0, (from, Duration::ZERO)).unwrap();
        assert!(given.next.is_none_or(|next| next > from), "no page was given back");
        (next, bytes) = (given.next, bytes + given.bytes);
    }
    assert!(bytes > 3_000_000, "{bytes}");
}
