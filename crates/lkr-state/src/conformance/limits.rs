use bytes::Bytes;

use super::support::*;
use crate::{ErrorKind, Expect, ScanOrder, StateStoreExt as _, Write};

/// Keys may have up to 400 bytes and any characters, and similar keys are distinct.
pub async fn keys_of_any_characters_up_to_400_bytes_are_distinct(store: Store) {
    let base = unique_prefix();
    let longest = format!("{base}{}", "x".repeat(400 - base.len()));
    let wide = format!("{base}{}é", "x".repeat(400 - base.len() - 2));
    let mut all = vec![longest.clone(), wide, base.clone()];
    let odd = [
        "a",
        "A",
        "a/",
        "a//",
        "a/b",
        "a b",
        "ä",
        "a\u{308}",
        "鍵",
        "\u{0}",
        "a\u{0}",
        "\n",
        "%00",
        "*",
        "[a]",
        "\u{10ffff}",
    ];
    all.extend(odd.map(|key| format!("{base}{key}")));
    for key in &all {
        assert!(key.len() <= 400);
        store.apply(vec![Write::put(key, Expect::Absent, key.clone())]).await.unwrap();
    }
    for key in &all {
        assert_eq!(text(&store, key).await.as_ref(), Some(key));
    }
    all.sort_unstable();
    let found = store.scan(&base, None, ScanOrder::Ascending, 1000).await.unwrap();
    assert_eq!(
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
        all,
        "keys must be sorted by their bytes"
    );
    store.apply(vec![Write::delete(&longest, Expect::Any)]).await.unwrap();
    assert_eq!(get(&store, &longest).await, None);
}

/// An empty key or a key of 401 bytes fails the whole step and the whole read.
pub async fn empty_or_too_long_keys_are_invalid(store: Store) {
    let base = unique_prefix();
    let valid = format!("{base}valid");
    let too_long = format!("{base}{}", "x".repeat(401 - base.len()));
    let too_wide = format!("{base}{}é", "x".repeat(399 - base.len()));
    for invalid in [String::new(), too_long, too_wide, "y".repeat(100_000)] {
        let writes = [
            Write::put(&invalid, Expect::Any, "v"),
            Write::delete(&invalid, Expect::Any),
            Write::increment(&invalid),
            Write::check(&invalid, Expect::Any),
        ];
        for write in writes {
            let first = vec![write.clone(), Write::put(&valid, Expect::Any, "v")];
            let last = vec![Write::put(&valid, Expect::Any, "v"), write];
            assert_kind(store.apply(first).await, ErrorKind::Invalid);
            assert_kind(store.apply(last).await, ErrorKind::Invalid);
        }
        assert_kind(store.get_many(&[valid.clone(), invalid]).await, ErrorKind::Invalid);
    }
    assert_eq!(get(&store, &valid).await, None);
}

/// A value of 1 MiB is stored; one byte more fails the whole step.
pub async fn values_up_to_one_mebibyte_are_stored(store: Store) {
    let base = unique_prefix();
    let (key, other) = (format!("{base}key"), format!("{base}other"));
    let largest = Bytes::from((0..1 << 20).map(|n: u32| (n % 251) as u8).collect::<Vec<_>>());
    store.apply(vec![Write::put(&key, Expect::Any, largest.clone())]).await.unwrap();
    assert_eq!(get(&store, &key).await.unwrap().value, largest);
    let too_large = Bytes::from(vec![0; (1 << 20) + 1]);
    let step = vec![Write::put(&other, Expect::Any, "v"), Write::put(&key, Expect::Any, too_large)];
    assert_kind(store.apply(step).await, ErrorKind::Invalid);
    assert_eq!(get(&store, &key).await.unwrap().value, largest);
    assert_eq!(get(&store, &other).await, None);
}

/// A step with the same key twice is refused for every combination of writes.
pub async fn apply_with_a_key_twice_is_invalid(store: Store) {
    let base = unique_prefix();
    let (key, other) = (format!("{base}key"), format!("{base}other"));
    let writes = [
        Write::put(&key, Expect::Any, "1"),
        Write::delete(&key, Expect::Any),
        Write::increment(&key),
        Write::check(&key, Expect::Any),
    ];
    for first in &writes {
        for second in &writes {
            let step = vec![first.clone(), Write::put(&other, Expect::Any, "v"), second.clone()];
            assert_kind(store.apply(step).await, ErrorKind::Invalid);
        }
    }
    assert_eq!(get(&store, &key).await, None);
    assert_eq!(get(&store, &other).await, None);
}

/// Empty requests succeed, and reads of unknown keys return nothing.
pub async fn empty_requests_change_nothing(store: Store) {
    store.apply(vec![]).await.unwrap();
    assert_eq!(store.get_many(&[]).await.unwrap(), []);
    assert_eq!(store.scan(&unique_prefix(), None, ScanOrder::Ascending, 10).await.unwrap(), []);
    assert_eq!(store.scan(&unique_prefix(), Some("a"), ScanOrder::Descending, 10).await.unwrap(), []);
    assert_eq!(store.get(&unique_prefix()).await.unwrap(), None);
}

/// A working store reports that it is healthy.
pub async fn health_of_a_working_store_is_ok(store: Store) {
    store.health().await.unwrap();
    assert!(!format!("{store:?}").is_empty());
}
