use std::sync::Arc;

use super::support::*;
use crate::{Expect, Scan, ScanOrder, Write};

async fn store_keys(store: &Store, keys: &[&str]) -> String {
    let base = unique_prefix();
    let step = keys.iter().map(|key| Write::put(format!("{base}{key}"), Expect::Absent, (*key).to_owned()));
    store.apply(step.collect()).await.unwrap();
    base
}

/// A scan returns exactly the keys that begin with the prefix, in both orders.
pub async fn scan_returns_only_keys_with_the_prefix(store: Store) {
    let all = ["doc", "doc/", "doc/1", "doc/2", "doc-x/1", "docs/1", "dod", "do", "Doc/1"];
    let base = store_keys(&store, &all).await;
    for order in [ScanOrder::Ascending, ScanOrder::Descending] {
        for prefix in ["", "d", "do", "doc", "doc/", "doc/1", "doc/12", "docs", "z", "Doc"] {
            let mut expected: Vec<&str> = all.into_iter().filter(|key| key.starts_with(prefix)).collect();
            expected.sort_unstable();
            if order == ScanOrder::Descending {
                expected.reverse();
            }
            assert_eq!(keys(&store, &base, prefix, None, order).await, expected, "{prefix:?} {order:?}");
        }
    }
    let found = store.scan(&format!("{base}doc/1"), None, ScanOrder::Ascending, 10).await.unwrap();
    assert_eq!(found[0].1.value, "doc/1");
    assert_eq!(found[0].1.version, version(&store, &format!("{base}doc/1")).await);
}

/// Keys are sorted by their bytes in either direction; the limit drops the last ones.
pub async fn scan_returns_keys_in_byte_order_in_both_directions(store: Store) {
    let base = store_keys(&store, &["b", "a", "é", "z", "Z", "10", "9", "a/", "日"]).await;
    let ascending = ["10", "9", "Z", "a", "a/", "b", "z", "é", "日"];
    let mut descending = ascending;
    descending.reverse();
    for limit in [0, 1, 4, 9, 10, usize::MAX] {
        for (order, expected) in [(ScanOrder::Ascending, ascending), (ScanOrder::Descending, descending)] {
            let found = store.scan(&base, None, order, limit).await.unwrap();
            let found: Vec<_> = found.iter().map(|(key, _)| key.strip_prefix(&base).unwrap()).collect();
            assert_eq!(found, expected[..limit.min(9)], "{order:?}, {limit}");
        }
    }
}

/// `after` itself is not returned; it need not exist, and may lie on either side of the keys with the prefix.
pub async fn scan_starts_after_the_given_key(store: Store) {
    let base = store_keys(&store, &["a", "p/1", "p/3", "p/5", "q"]).await;
    for (after, ascending, descending) in [
        ("p/3", vec!["p/5"], vec!["p/1"]),
        ("p/2", vec!["p/3", "p/5"], vec!["p/1"]),
        ("p/30", vec!["p/5"], vec!["p/3", "p/1"]),
        ("p/", vec!["p/1", "p/3", "p/5"], vec![]),
        ("p/5", vec![], vec!["p/3", "p/1"]),
        ("p/9", vec![], vec!["p/5", "p/3", "p/1"]),
        ("a", vec!["p/1", "p/3", "p/5"], vec![]),
        ("", vec!["p/1", "p/3", "p/5"], vec![]),
        ("q", vec![], vec!["p/5", "p/3", "p/1"]),
        ("zz", vec![], vec!["p/5", "p/3", "p/1"]),
    ] {
        assert_eq!(keys(&store, &base, "p/", Some(after), ScanOrder::Ascending).await, ascending, "{after}");
        assert_eq!(
            keys(&store, &base, "p/", Some(after), ScanOrder::Descending).await,
            descending,
            "{after}"
        );
    }
    let largest = "\u{10ffff}".repeat(200);
    assert!(store.scan(&base, Some(&largest), ScanOrder::Ascending, 10).await.unwrap().is_empty());
    assert_eq!(store.scan(&base, Some(&largest), ScanOrder::Descending, 10).await.unwrap().len(), 5);
    assert_eq!(store.scan(&base, Some(""), ScanOrder::Ascending, 10).await.unwrap().len(), 5);
}

/// While records are deleted and added between pages, each unchanged record is returned once.
pub async fn scan_pages_during_changes_return_unchanged_records_once(store: Store) {
    for order in [ScanOrder::Ascending, ScanOrder::Descending] {
        let base = unique_prefix();
        let key = |n: usize| format!("{base}{n:04}");
        store.apply((0..100).map(|n| Write::put(key(n), Expect::Any, "v")).collect()).await.unwrap();
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        for round in 0.. {
            let page = store.scan(&base, after.as_deref(), order, 7).await.unwrap();
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            seen.extend(page.iter().map(|(key, _)| key.clone()));
            // Deletes the last record seen unless it must stay.
            let number = last.strip_prefix(&base).and_then(|number| number.parse::<usize>().ok());
            if number.is_none_or(|number| !number.is_multiple_of(3)) {
                store.apply(vec![Write::delete(last, Expect::Any)]).await.unwrap();
            }
            let new = Write::put(format!("{}+", key(round * 13 % 100)), Expect::Any, "new");
            store.apply(vec![new]).await.unwrap();
        }
        let mut unchanged: Vec<String> = (0..100).step_by(3).map(key).collect();
        if order == ScanOrder::Descending {
            unchanged.reverse();
        }
        seen.retain(|key| unchanged.contains(key));
        assert_eq!(seen, unchanged, "{order:?}");
    }
}

/// Prefixes may end in the largest character, contain a zero byte, or be longer than any key.
pub async fn scan_handles_prefixes_with_extreme_characters(store: Store) {
    let all = [
        "a",
        "a\u{0}",
        "a\u{0}b",
        "m\u{10ffff}",
        "m\u{10ffff}x",
        "m\u{d7ff}",
        "m\u{e000}",
        "n",
        "\u{10ffff}",
    ];
    let base = store_keys(&store, &all).await;
    for prefix in ["a\u{0}", "m\u{10ffff}", "m\u{d7ff}", "\u{10ffff}", "m"] {
        let mut expected: Vec<&str> = all.into_iter().filter(|key| key.starts_with(prefix)).collect();
        expected.sort_unstable();
        assert_eq!(keys(&store, &base, prefix, None, ScanOrder::Ascending).await, expected, "{prefix:?}");
        expected.reverse();
        assert_eq!(keys(&store, &base, prefix, None, ScanOrder::Descending).await, expected, "{prefix:?}");
    }
    let long = "x".repeat(1000);
    for order in [ScanOrder::Ascending, ScanOrder::Descending] {
        assert!(keys(&store, &base, &long, None, order).await.is_empty());
    }
}

/// A scan with the empty prefix and an `after` next to a key finds that key, in both orders.
pub async fn scan_with_the_empty_prefix_returns_all_keys(store: Store) {
    let base = store_keys(&store, &["1", "2", "3"]).await;
    for (after, order, first) in [("", ScanOrder::Ascending, "1"), ("4", ScanOrder::Descending, "3")] {
        let after = format!("{base}{after}");
        let found = store.scan("", Some(&after), order, 3).await.unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].0, format!("{base}{first}"));
    }
}

/// Each of several scans returns what it returns alone, whatever the others are.
pub async fn scan_many_returns_what_each_scan_returns_alone(store: Store) {
    let base = store_keys(&store, &["a/1", "a/2", "a/3", "b/1", "b/2", "c", "é/1"]).await;
    let mut scans = Vec::new();
    for (prefix, after) in
        [("a/", None), ("a/", Some("a/2")), ("b/", Some("a/2")), ("b/", Some("c")), ("", None), ("d", None)]
    {
        for (order, limit) in [
            (ScanOrder::Ascending, usize::MAX),
            (ScanOrder::Descending, 1000),
            (ScanOrder::Ascending, 0),
            (ScanOrder::Descending, 2),
        ] {
            let after = after.map(|after| format!("{base}{after}"));
            scans.push(Scan { prefix: format!("{base}{prefix}"), after, order, limit });
        }
    }
    let mut alone = Vec::new();
    for Scan { prefix, after, order, limit } in &scans {
        alone.push(store.scan(prefix, after.as_deref(), *order, *limit).await.unwrap());
    }
    assert_eq!(store.scan_many(&scans).await.unwrap(), alone);
    for (scan, found) in scans.into_iter().zip(alone) {
        assert_eq!(store.scan_many(&[scan.clone(), scan]).await.unwrap(), [found.clone(), found]);
    }
    assert!(store.scan_many(&[]).await.unwrap().is_empty());
}

/// While steps move records between two prefixes, every pair of scans of both finds each record once.
pub async fn scan_many_during_moves_finds_each_record_once(store: Store) {
    let base = unique_prefix();
    let key = |side: usize, n: usize| format!("{base}{side}/{n}");
    let move_to = |side: usize| {
        let writes = (0..4).flat_map(|n| {
            [Write::put(key(side, n), Expect::Any, "v"), Write::delete(key(1 - side, n), Expect::Any)]
        });
        writes.collect::<Vec<_>>()
    };
    store.apply(move_to(0)).await.unwrap();
    let writer = {
        let (store, moves) = (Arc::clone(&store), (1..100).map(|n| move_to(n % 2)).collect::<Vec<_>>());
        tokio::spawn(async move {
            for writes in moves {
                store.apply(writes).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    loop {
        let writer_finished = writer.is_finished();
        // A store may read few records in another way than many.
        for (order, limit) in [(ScanOrder::Ascending, 4), (ScanOrder::Descending, 1000)] {
            let scans =
                [0, 1].map(|side| Scan { prefix: format!("{base}{side}/"), after: None, order, limit });
            let found = store.scan_many(&scans).await.unwrap();
            let mut found: Vec<_> = found.iter().flatten().map(|(key, _)| key.rsplit('/').next()).collect();
            found.sort_unstable();
            assert_eq!(found, ["0", "1", "2", "3"].map(Some), "{order:?}");
        }
        if writer_finished {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
