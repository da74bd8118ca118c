//! Every kind of damage is reported, repaired and not found again; undamaged data is unchanged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{fs, path::Path, time::Duration};

use common::{exact, name, open, point, spec, write_rows};
use lkr_domain::TaskId;
use lkr_state::{Expect, StateStore, TaskQueue, Write};
use lkr_store_lmdb::{LmdbStore, StoreCheck};
use lkr_vectors::{Collection, Condition, Filter, Include, Point, Tags, VectorStore};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const POINTS: u32 = 1_500;

/// A closed store with rows in every table, and its points.
async fn filled(folder: &Path) -> Vec<Point> {
    let store = open(folder);
    let mut rng = StdRng::seed_from_u64(5);
    let points: Vec<_> = (0..POINTS).map(|n| point(n, &mut rng)).collect();
    store.vectors().ensure(&spec(&name("points.a"))).await.unwrap();
    store.vectors().switch(&[(name("points"), name("points.a"))]).await.unwrap();
    for batch in points.chunks(500) {
        store.vectors().upsert(&name("points"), batch.to_vec()).await.unwrap();
    }
    for n in 0..50 {
        let hour = Duration::from_secs(3_600);
        let write = Write::put_for(format!("short/{n}"), Expect::Any, "value", hour);
        store
            .state()
            .apply(vec![write, Write::put(format!("long/{n}"), Expect::Any, "value")])
            .await
            .unwrap();
        store.queue().push(TaskId::new(), Duration::from_secs(n)).await.unwrap();
    }
    points
}

fn found(folder: &Path) -> Vec<String> {
    let check = StoreCheck::new(folder, exact()).unwrap();
    check.findings().iter().map(|finding| finding.what.clone()).collect()
}

/// Repairs the store, checks that no finding is left, and returns it.
fn repaired_store(folder: &Path) -> LmdbStore {
    try_repair(folder).unwrap()
}

fn try_repair(folder: &Path) -> Result<LmdbStore, lkr_store_lmdb::Error> {
    let aside = tempfile::tempdir().unwrap();
    drop(StoreCheck::new(folder, exact()).unwrap().repair(&aside.path().join("kb"))?);
    assert_eq!(found(folder), Vec::<String>::new());
    Ok(open(folder))
}

/// A change of a row: `None` removes it.
type Change = fn(Option<&[u8]>) -> Option<Vec<u8>>;

fn flipped(row: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut row = row?.to_vec();
    let at = row.len() / 2;
    row[at] ^= 4;
    Some(row)
}

fn torn(row: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut row = row?.to_vec();
    row.iter_mut().rev().take(4).for_each(|byte| *byte = !*byte);
    Some(row)
}

fn gone(_: Option<&[u8]>) -> Option<Vec<u8>> {
    None
}

/// Changes the middle row of a table without the store.
fn change(folder: &Path, table: &str, change: Change) {
    write_rows(folder, table, |table, txn| {
        let middle = table.len(txn).unwrap() as usize / 2;
        let row = table.iter(txn).unwrap().nth(middle).unwrap().unwrap();
        let (key, value) = (row.0.to_vec(), change(Some(row.1)));
        match value {
            Some(value) => table.put(txn, &key, &value).unwrap(),
            None => drop(table.delete(txn, &key).unwrap()),
        }
    });
}

async fn all(store: &LmdbStore, collection: &Collection) -> Vec<Point> {
    store.vectors().scroll(collection, &Filter::all(), None, 10_000, Include::All).await.unwrap().points
}

#[tokio::test]
async fn undamaged_store_has_no_findings_and_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    let data = folder.path().join("kb/data.mdb");
    let before = fs::read(&data).unwrap();
    let check = StoreCheck::new(folder.path(), exact()).unwrap();
    assert!(check.findings().is_empty(), "{:?}", check.findings());
    assert!(LmdbStore::open(folder.path(), exact()).is_err(), "it is locked");
    let store = check.into_store().unwrap();
    assert_eq!(all(&store, &name("points")).await.len(), POINTS as usize);
    let refused = store.state().apply(vec![Write::put("key", Expect::Any, "value")]).await;
    assert!(refused.is_err());
    drop(store);
    assert!(fs::read(&data).unwrap() == before, "nothing was written");
}

#[tokio::test]
async fn damage_in_any_table_is_found_and_repaired() {
    for (table, damage, says) in [
        ("state", flipped as Change, "the record short/0 is damaged"),
        ("state", torn, "the record short/0 is damaged"),
        ("collections", flipped, "the record of collection points.a is damaged"),
        ("aliases", flipped, "the alias points leads to no collection"),
        ("aliases", torn, "the alias points leads to no collection"),
        ("expiries", gone, "would never expire"),
        ("tasks", flipped, "an entry of the queue is damaged"),
        ("tasks", gone, "an entry of the due table belongs to no queued task"),
        ("due", gone, "is queued and would never be due"),
        ("counters", flipped, "the ids of points.a are damaged"),
        ("counters", gone, "the ids of points.a are damaged"),
        ("ids", flipped, "the entry of point"),
        ("ids", gone, "the entry of point"),
        ("origins", flipped, "the origin of point number"),
        ("origins", gone, "the missing origin of point number"),
        ("bodies", flipped, "the body of point"),
        ("bodies", gone, "the body of point"),
        ("dense", flipped, "the dense vector of point"),
        ("postings", flipped, "the posting lists of points.a"),
        ("postings", gone, "the posting lists of points.a"),
        ("bitmaps", flipped, "the filter bitmaps of points.a"),
        ("bitmaps", gone, "the filter bitmaps of points.a"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let points = filled(folder.path()).await;
        change(folder.path(), table, damage);
        let findings = found(folder.path());
        assert!(findings.iter().any(|finding| finding.contains(says)), "{table}: {findings:?}");
        let store = repaired_store(folder.path());
        let left = all(&store, &name("points")).await;
        // The undamaged points are stored, and all indexes contain exactly them.
        assert!(left.len() + 1 >= points.len(), "{table}: {}", left.len());
        assert!(left.iter().all(|point| points.contains(point)), "{table}");
        let by_id = Filter::only(Condition::Ids(points.iter().map(|point| point.id).collect()));
        assert_eq!(store.vectors().count(&name("points"), &by_id).await.unwrap(), left.len() as u64);
        let more: Vec<Point> = (0..20).map(|n| point(POINTS + n, &mut StdRng::seed_from_u64(9))).collect();
        store.vectors().upsert(&name("points"), more).await.unwrap();
        drop(store);
        assert_eq!(found(folder.path()), Vec::<String>::new(), "{table}");
    }
}

/// A damaged set of tags costs its points their tags, which follow from the documents, and nothing else.
#[tokio::test]
async fn damaged_set_of_tags_is_emptied_and_can_be_set_again() {
    for damage in [flipped as Change, torn, gone] {
        let folder = tempfile::tempdir().unwrap();
        let points = filled(folder.path()).await;
        let tags = Tags::from([("title".to_owned(), "long ".repeat(1_000))]);
        let first = Filter::only(Condition::Ids(points.iter().take(10).map(|point| point.id).collect()));
        open(folder.path()).vectors().set_tags(&name("points"), &first, &tags).await.unwrap();
        change(folder.path(), "tag_sets", damage);
        let findings = found(folder.path());
        assert!(
            findings.iter().any(|finding| finding.contains("the tags of points in points.a")),
            "{findings:?}"
        );
        let store = repaired_store(folder.path());
        let left = all(&store, &name("points")).await;
        assert_eq!(left.len(), points.len());
        assert!(left.iter().take(10).all(|point| point.tags.is_empty()));
        assert!(left.iter().skip(10).eq(points.iter().skip(10)));
        assert_eq!(store.vectors().set_tags(&name("points"), &first, &tags).await.unwrap(), 10);
        let titled = Condition::Tag { key: "title".to_owned(), any: vec!["long ".repeat(1_000)] };
        assert_eq!(store.vectors().count(&name("points"), &Filter::only(titled)).await.unwrap(), 10);
        drop(store);
        assert_eq!(found(folder.path()), Vec::<String>::new());
    }
}

/// A collection with an unreadable record is not dropped: the record is derived from others or stays as it is.
#[tokio::test]
async fn collection_with_damaged_record_keeps_its_points() {
    for has_sibling in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let points = filled(folder.path()).await;
        if has_sibling {
            open(folder.path()).vectors().ensure(&spec(&name("others.a"))).await.unwrap();
        }
        change(folder.path(), "collections", torn);
        let check = StoreCheck::new(folder.path(), exact()).unwrap();
        let [finding] = check.findings() else { panic!("{:?}", check.findings()) };
        assert_eq!(finding.what, "the record of collection points.a is damaged");
        assert_eq!(finding.is_unrepairable(), !has_sibling);
        drop(check);
        if has_sibling {
            assert_eq!(all(&repaired_store(folder.path()), &name("points")).await, points);
        } else {
            let aside = tempfile::tempdir().unwrap();
            let refused = StoreCheck::new(folder.path(), exact()).unwrap().repair(aside.path()).unwrap_err();
            assert!(refused.to_string().ends_with("run `lkr doctor` to list the damage"), "{refused}");
            assert_eq!(found(folder.path()).len(), 1, "nothing was dropped");
        }
    }
}

#[tokio::test]
async fn damaged_format_record_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let points = filled(folder.path()).await;
    let data = folder.path().join("kb/data.mdb");
    let mut bytes = fs::read(&data).unwrap();
    // The checksum and the number follow the key.
    let keys = bytes.windows(6).enumerate().filter(|(_, key)| *key == b"format");
    let at: Vec<_> = keys.map(|(at, _)| at + 10).collect();
    assert!(!at.is_empty());
    for at in at {
        bytes[at] ^= 1;
    }
    fs::write(&data, bytes).unwrap();
    let refused = LmdbStore::open(folder.path(), exact()).unwrap_err().to_string();
    assert_eq!(refused, "open: the format record is damaged; run `lkr doctor` to list the damage");
    assert_eq!(found(folder.path()), ["the format record is damaged"]);
    assert_eq!(all(&repaired_store(folder.path()), &name("points")).await, points);
}

/// The read-only store of a check skips unreadable records.
#[tokio::test]
async fn read_only_scan_skips_damaged_records() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    change(folder.path(), "state", torn);
    let scanned = async |store: LmdbStore| {
        let order = lkr_state::ScanOrder::Ascending;
        store.state().scan("", None, order, 1_000).await.map(|records| records.len())
    };
    let read_only = StoreCheck::new(folder.path(), exact()).unwrap().into_store().unwrap();
    assert_eq!(scanned(read_only).await.unwrap(), 99);
    assert!(scanned(open(folder.path())).await.is_err(), "a normal scan reports the damage");
}

/// If primary data is missing and clusters exist, no new store is created.
#[tokio::test]
async fn store_without_its_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    fs::create_dir_all(folder.path().join("graph")).unwrap();
    let data = folder.path().join("kb/data.mdb");
    for (is_there, says) in [(true, "is empty"), (false, "is missing")] {
        fs::remove_file(&data).unwrap();
        if is_there {
            fs::write(&data, "").unwrap();
        }
        let refused = LmdbStore::open(folder.path(), exact()).unwrap_err();
        assert_eq!(refused.kind(), lkr_store_lmdb::ErrorKind::Corrupt);
        assert!(refused.to_string().contains(says), "{refused}");
        assert_eq!(found(folder.path()), [format!("store/kb/data.mdb {says}")]);
        let aside = folder.path().join("aside");
        assert!(StoreCheck::new(folder.path(), exact()).unwrap().repair(&aside).is_err());
        assert_eq!(fs::metadata(&data).map(|data| data.len()).ok(), is_there.then_some(0));
    }
    fs::remove_dir_all(folder.path().join("kb")).unwrap();
    assert!(LmdbStore::open(folder.path(), exact()).is_err());
    assert!(!data.exists());
}

/// After a process that did not close the store, pages are checked before they are followed, because following damaged
/// ones can kill the process.
#[tokio::test]
async fn unclean_shutdown_checks_pages_at_the_next_open() {
    let folder = tempfile::tempdir().unwrap();
    let points = filled(folder.path()).await;
    let (data, mark) = (folder.path().join("kb/data.mdb"), folder.path().join("opened"));
    assert!(!mark.exists(), "it was closed");
    fs::write(&mark, ".").unwrap();
    let store = open(folder.path());
    assert_eq!(all(&store, &name("points")).await, points, "what is whole is opened");
    assert_eq!(fs::read(&mark).unwrap(), b"..");
    drop(store);
    assert!(!mark.exists());

    let mut bytes = fs::read(&data).unwrap();
    // The ends of the entries of each page.
    bytes.chunks_mut(4_096).skip(2).for_each(|page| page[12] ^= 0xff);
    fs::write(&data, bytes).unwrap();
    fs::write(&mark, ".").unwrap();
    for _ in 0..2 {
        let refused = LmdbStore::open(folder.path(), exact()).unwrap_err();
        assert_eq!(refused.kind(), lkr_store_lmdb::ErrorKind::Corrupt);
        let line = refused.to_string();
        assert!(line.contains("kb/data.mdb: "), "{line}");
        assert!(line.ends_with(" is damaged; run `lkr doctor` to list the damage"), "{line}");
    }
}

/// Damage by flipped bytes in primary data is reported or harmless, and the repair keeps all undamaged rows.
#[tokio::test]
async fn flipped_pages_are_reported_and_readable_rows_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let points = filled(folder.path()).await;
    let data = folder.path().join("kb/data.mdb");
    let file_bytes = fs::read(&data).unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    let (mut named, mut lost, mut unreadable) = (0, 0, 0);
    for round in 0..60 {
        let mut bytes = file_bytes.clone();
        let page = rng.random_range(2..bytes.len() / 4_096) * 4_096;
        // A byte anywhere, a page's header, or a whole sector.
        let (at, length) = match round % 3 {
            0 => (rng.random_range(8_192..bytes.len()), 1),
            1 => (page + rng.random_range(0..32), 1),
            _ => (page + 512 * rng.random_range(0..8), 512),
        };
        bytes[at..at + length].iter_mut().for_each(|byte| *byte ^= 1 << rng.random_range(0..8));
        fs::write(&data, &bytes).unwrap();
        let findings = found(folder.path());
        named += usize::from(!findings.is_empty());
        // One page lists all tables; without it there is nothing to salvage.
        let Ok(store) = try_repair(folder.path()) else {
            assert!(!findings.is_empty(), "{round}");
            unreadable += 1;
            continue;
        };
        if store.vectors().describe(&name("points")).await.unwrap().is_some() {
            let left = all(&store, &name("points")).await;
            // A lost dense vector cannot be noticed by a point alone: the comparison ignores it.
            let original = |point: &Point| points.iter().find(|original| original.id == point.id).unwrap();
            let is_unchanged = |point: &Point| {
                original(point) == &Point { dense: original(point).dense.clone(), ..point.clone() }
            };
            assert!(left.iter().all(is_unchanged), "{round}");
            assert!(!findings.is_empty() || left == points, "{round}");
            lost += points.len() - left.len();
        }
    }
    assert!(named > 20, "{named}");
    assert!(lost > 0 && unreadable < 3, "{lost}, {unreadable}");
}
