use bytes::Bytes;

use super::support::*;
use crate::{ErrorKind, Expect, ScanOrder, StateStoreExt as _, Write};

/// Keys of up to 400 bytes, of any characters, are all told apart.
pub async fn keys_of_every_length_and_kind(store: Store) {
    let base = fresh();
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
    assert_eq!(found.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), all, "in the order of their bytes");
    store.apply(vec![Write::delete(&longest, Expect::Any)]).await.unwrap();
    assert_eq!(get(&store, &longest).await, None);
}

/// No key, or one of 401 bytes, refuses the whole step and the whole read.
pub async fn wrong_keys_are_invalid(store: Store) {
    let base = fresh();
    let good = format!("{base}good");
    let too_long = format!("{base}{}", "x".repeat(401 - base.len()));
    let too_wide = format!("{base}{}é", "x".repeat(399 - base.len()));
    for bad in [String::new(), too_long, too_wide, "y".repeat(100_000)] {
        let writes = [
            Write::put(&bad, Expect::Any, "v"),
            Write::delete(&bad, Expect::Any),
            Write::increment(&bad),
            Write::check(&bad, Expect::Any),
        ];
        for write in writes {
            let before = vec![write.clone(), Write::put(&good, Expect::Any, "v")];
            let behind = vec![Write::put(&good, Expect::Any, "v"), write];
            assert_kind(store.apply(before).await, ErrorKind::Invalid);
            assert_kind(store.apply(behind).await, ErrorKind::Invalid);
        }
        assert_kind(store.get_many(&[good.clone(), bad]).await, ErrorKind::Invalid);
    }
    assert_eq!(get(&store, &good).await, None);
}

/// A value of 1 MiB is stored; one byte more refuses the whole step.
pub async fn values_up_to_a_mebibyte(store: Store) {
    let base = fresh();
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

/// The same key twice in a step is refused, whatever the two writes are.
pub async fn a_key_comes_once_in_a_step(store: Store) {
    let base = fresh();
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

/// Nothing in, nothing out.
pub async fn empty_requests_do_nothing(store: Store) {
    store.apply(vec![]).await.unwrap();
    assert_eq!(store.get_many(&[]).await.unwrap(), []);
    assert_eq!(store.scan(&fresh(), None, ScanOrder::Ascending, 10).await.unwrap(), []);
    assert_eq!(store.scan(&fresh(), Some("a"), ScanOrder::Descending, 10).await.unwrap(), []);
    assert_eq!(store.get(&fresh()).await.unwrap(), None);
}

/// A store that works says so.
pub async fn health_is_good(store: Store) {
    store.health().await.unwrap();
    assert!(!format!("{store:?}").is_empty());
}
