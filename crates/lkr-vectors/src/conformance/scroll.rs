use std::collections::BTreeSet;

use super::support::*;
use crate::{Condition, ErrorKind, Filter, Include, ScrollCursor};

/// With any page size, a scroll returns every matching point once and in the same order.
pub async fn scroll_returns_every_point_once(store: Store) {
    let name = create_collection(&store).await;
    for part in 0..5 {
        let points = (0..20).map(|n| with_tags(n * 5 + part, &[("part", ["a", "b"][n as usize % 2])]));
        store.upsert(&name, points.collect()).await.unwrap();
    }
    let all = scroll_all(&store, &name, &Filter::all(), 1000).await;
    let sorted: BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!(sorted, (0..100).collect());
    assert_eq!(all.len(), 100);
    for limit in [1, 7, 50, 99, 100, 101, usize::MAX] {
        assert_eq!(scroll_all(&store, &name, &Filter::all(), limit).await, all, "pages of {limit}");
    }
    let half = Filter::only(Condition::Tag { key: "part".to_owned(), any: vec!["b".to_owned()] });
    for limit in [1, 3, 1000] {
        let part = scroll_all(&store, &name, &half, limit).await;
        assert_eq!(part.len(), 50);
        assert!(part.iter().all(|n| n / 5 % 2 == 1));
    }
    let page = store.scroll(&name, &Filter::all(), None, 0, Include::All).await.unwrap();
    assert!(page.points.is_empty() && page.next.is_none(), "a page with limit 0 must be empty and the last");
}

/// While other points are added and removed between pages, each unchanged point is returned once.
pub async fn scroll_during_changes_returns_unchanged_points_once(store: Store) {
    let name = create_collection(&store).await;
    let unchanged = |n: u32| n.is_multiple_of(3);
    store.upsert(&name, (0..300).map(point).collect()).await.unwrap();
    let mut seen: Vec<u32> = Vec::new();
    let mut after = None;
    for round in 0.. {
        let page = store.scroll(&name, &Filter::all(), after.as_ref(), 7, Include::Payload).await.unwrap();
        seen.extend(page.points.iter().map(|point| point_number(point.id)));
        let Some(next) = page.next else { break };
        after = Some(next);
        // Removes the last point seen and one other, unless they must stay; adds a removed point and a new one.
        let removed =
            [seen.last().copied().unwrap(), round * 11 % 300].into_iter().filter(|n| !unchanged(*n));
        let removed = Condition::Ids(removed.map(id).collect());
        store.delete(&name, &Filter::only(removed)).await.unwrap();
        store.upsert(&name, vec![point(round * 7 % 300), point(1000 + round)]).await.unwrap();
        store.upsert(&name, vec![point(round * 3 % 300)]).await.unwrap();
    }
    let unique: BTreeSet<u32> = seen.iter().copied().filter(|n| unchanged(*n) && *n < 300).collect();
    assert_eq!(unique.len(), 100, "every unchanged point must be returned");
    let occurrences = seen.iter().filter(|n| unchanged(**n) && **n < 300).count();
    assert_eq!(occurrences, 100, "no unchanged point may be returned twice");
}

/// Cursors that the store did not issue are refused.
pub async fn scroll_with_a_foreign_cursor_is_invalid(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, vec![point(1), point(2)]).await.unwrap();
    for bytes in [vec![], b"?".to_vec(), b"no cursor".to_vec(), vec![0xff; 100]] {
        let cursor = ScrollCursor(bytes);
        let actual = store.scroll(&name, &Filter::all(), Some(&cursor), 10, Include::Payload).await;
        assert_kind(actual, ErrorKind::Invalid);
    }
}
