use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::env::{Environment, Map, create_tables, open_env};

fn opened() -> (Environment, Table, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let env = open_env(dir.path(), Map::default(), 1).unwrap();
    let [table] = create_tables(&env, ["table"]).unwrap();
    (env, table, dir)
}

fn pages(env: &Environment, table: Table) -> usize {
    table.stat(&env.read_txn().unwrap()).unwrap().leaf_pages
}

fn rows(env: &Environment, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let txn = env.read_txn().unwrap();
    table
        .iter(&txn)
        .unwrap()
        .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
        .collect()
}

/// Packs all slices, and returns how many pages they need according to their estimates.
fn pack(env: &Environment, table: Table) -> usize {
    let (mut after, mut packed) = (Vec::new(), 0);
    loop {
        let slice = Slice::next(table, &env.read_txn().unwrap(), &after).unwrap();
        let Some(slice) = slice else { return packed };
        if slice.pays_off() {
            let mut txn = env.write_txn().unwrap();
            write_again(table, &mut txn, (&after, &slice.last), slice.rows.div_ceil(slice.packed)).unwrap();
            txn.commit().unwrap();
        }
        packed += slice.packed;
        after = slice.last;
    }
}

/// Inserts rows of several collections in turns, each behind those of the same collection.
fn insert_in_turns(env: &Environment, table: Table, turns: u32, width: usize) {
    let mut txn = env.write_txn().unwrap();
    for turn in 0..turns {
        for collection in 0..4_u8 {
            let key = [&[collection][..], &turn.to_be_bytes()].concat();
            table.put(&mut txn, &key, &vec![collection; width]).unwrap();
        }
    }
    txn.commit().unwrap();
}

/// Of the narrowest rows there are so many that their pages are below several of the level above.
#[test]
fn pages_of_rows_that_were_inserted_among_others_become_full() {
    for (width, turns, at_most) in [
        (60, 8_000, 1.05),
        (400, 1_000, 1.15),
        (780, 1_000, 1.05),
        (1_100, 1_000, 1.05),
        (1_500, 1_000, 1.08),
    ] {
        let (env, table, _dir) = opened();
        insert_in_turns(&env, table, turns, width);
        let (before, expected) = (pages(&env, table), rows(&env, table));
        let packed = pack(&env, table);
        let after = pages(&env, table);
        assert!(after as f64 <= packed as f64 * at_most, "{width}: {after} pages, {packed} would do");
        assert!(after * 10 < before * 9, "{width}: {before} pages, {after} after packing");
        assert_eq!(rows(&env, table), expected);
    }
}

fn names(packing: &Packing) -> Vec<&'static str> {
    packing.tables.iter().map(|(name, _)| *name).collect()
}

#[test]
fn pass_packs_all_tables_that_changed_and_remembers_their_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(dir.path(), Map::default()).unwrap();
    let (writer, _) = Writer::start(kb.writing(), || Ok(()), || {}).unwrap();
    let tables = [kb.tables.state, kb.tables.dense];
    tables.iter().for_each(|table| insert_in_turns(&kb.writing(), *table, 800, 100));
    let sizes = || tables.map(|table| Size::of(table, &kb.snapshot().unwrap()).unwrap());
    let contents = || tables.map(|table| rows(&kb.writing(), table));
    let (before, expected) = (sizes(), contents());

    let mut packing = Packing::default();
    packing.begin_if_due(&kb).unwrap();
    assert_eq!(names(&packing), ["state", "dense"]);
    while packing.is_under_way() {
        packing.step(&kb, &writer).unwrap();
    }
    let after = sizes();
    assert!(after.iter().zip(before).all(|(after, before)| after.pages * 10 < before.pages * 9), "{after:?}");
    assert_eq!(contents(), expected);
    let txn = kb.snapshot().unwrap();
    assert_eq!(["state", "dense"].map(|name| Size::packed(&kb, &txn, name).unwrap()), after);
    packing.begin_if_due(&kb).unwrap();
    assert!(!packing.is_under_way(), "nothing has changed");
    insert_in_turns(&kb.writing(), kb.tables.bodies, 800, 100);
    packing.begin_if_due(&kb).unwrap();
    assert_eq!(names(&packing), ["bodies"]);
}

#[test]
fn slice_ends_with_its_last_page() {
    let (env, table, _dir) = opened();
    insert_in_turns(&env, table, 2_000, 60);
    let (mut after, mut counted, mut seen) = (Vec::new(), 0, 0);
    let txn = env.read_txn().unwrap();
    while let Some(slice) = Slice::next(table, &txn, &after).unwrap() {
        assert!(slice.pages <= SLICE_PAGES && slice.packed <= slice.pages, "{slice:?}");
        (counted, seen) = (counted + slice.pages, seen + slice.rows);
        after = slice.last;
    }
    assert_eq!((counted, seen), (pages(&env, table), 8_000));
}

#[test]
fn pass_is_due_after_changes_of_an_eighth() {
    let size = |pages, rows| Size { pages, rows };
    assert!(is_due(size(32, 10), Size::default()));
    assert!(!is_due(size(31, 10), Size::default()), "too small");
    let packed = size(800, 8_000);
    for (now, due) in [
        (packed, false),
        (size(900, 9_000), false),
        (size(901, 8_000), true),
        (size(699, 8_000), true),
        (size(800, 7_000), false),
        (size(800, 6_999), true),
    ] {
        assert_eq!(is_due(now, packed), due, "{now:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Short keys that begin with one another, keys as long as LMDB allows, and values on pages of their own.
    #[test]
    fn packing_keeps_all_rows(
        changes in prop::collection::vec(
            (prop::collection::vec(0_u8..3, 1..6), prop_oneof![Just(0_usize), 1..300_usize, Just(505)], 0..5_000_usize, any::<bool>()),
            1..300,
        ),
        rows_a_page in 1_usize..20,
        slice in 1_usize..40,
    ) {
        let (env, table, _dir) = opened();
        let mut expected = BTreeMap::new();
        let mut txn = env.write_txn().unwrap();
        for (prefix, filling, width, is_removed) in changes {
            let key = [prefix, vec![7; filling]].concat();
            if is_removed {
                table.delete(&mut txn, &key).unwrap();
                expected.remove(&key);
            } else {
                let value = vec![width as u8; width];
                table.put(&mut txn, &key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        txn.commit().unwrap();
        let expected: Vec<_> = expected.into_iter().collect();
        let mut after = Vec::new();
        for part in expected.chunks(slice) {
            let last = &part[part.len() - 1].0;
            let mut txn = env.write_txn().unwrap();
            write_again(table, &mut txn, (&after, last), rows_a_page).unwrap();
            txn.commit().unwrap();
            after = last.clone();
        }
        prop_assert_eq!(rows(&env, table), expected);
    }
}
