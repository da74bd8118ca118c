use std::collections::BTreeSet;

use super::support::*;
use crate::{Condition, ErrorKind, Filter, Include, ScrollCursor};

/// Pages of any size hold every point that passes exactly once, in the same order each time.
pub async fn scroll_answers_every_point_once(store: Store) {
    let name = made(&store).await;
    for part in 0..5 {
        let points = (0..20).map(|n| with_tags(n * 5 + part, &[("part", ["a", "b"][n as usize % 2])]));
        store.upsert(&name, points.collect()).await.unwrap();
    }
    let whole = scrolled(&store, &name, &Filter::all(), 1000).await;
    let sorted: BTreeSet<u32> = whole.iter().copied().collect();
    assert_eq!(sorted, (0..100).collect());
    assert_eq!(whole.len(), 100);
    for limit in [1, 7, 50, 99, 100, 101, usize::MAX] {
        assert_eq!(scrolled(&store, &name, &Filter::all(), limit).await, whole, "pages of {limit}");
    }
    let half = Filter::only(Condition::Tag { key: "part".to_owned(), any: vec!["b".to_owned()] });
    for limit in [1, 3, 1000] {
        let part = scrolled(&store, &name, &half, limit).await;
        assert_eq!(part.len(), 50);
        assert!(part.iter().all(|n| n / 5 % 2 == 1));
    }
    let page = store.scroll(&name, &Filter::all(), None, 0, Include::All).await.unwrap();
    assert!(page.points.is_empty() && page.next.is_none(), "a page of none is the last");
}

/// While points come and go between the pages, none comes twice and none that stays is left out.
pub async fn scroll_is_stable_under_changes(store: Store) {
    let name = made(&store).await;
    let stays = |n: u32| n.is_multiple_of(3);
    store.upsert(&name, (0..300).map(point).collect()).await.unwrap();
    let mut seen: Vec<u32> = Vec::new();
    let mut after = None;
    for round in 0.. {
        let page = store.scroll(&name, &Filter::all(), after.as_ref(), 7, Include::Payload).await.unwrap();
        seen.extend(page.points.iter().map(|point| number(point.id)));
        let Some(next) = page.next else { break };
        after = Some(next);
        // One of those that do not stay goes, the last seen among them; one comes back; a new one comes.
        let leaving = [seen.last().copied().unwrap(), round * 11 % 300].into_iter().filter(|n| !stays(*n));
        let gone = Condition::Ids(leaving.map(id).collect());
        store.delete(&name, &Filter::only(gone)).await.unwrap();
        let back = (round * 7 % 300, 1000 + round);
        store.upsert(&name, vec![point(back.0), point(back.1)]).await.unwrap();
        store.upsert(&name, vec![point(round * 3 % 300)]).await.unwrap();
    }
    let unique: BTreeSet<u32> = seen.iter().copied().filter(|n| stays(*n) && *n < 300).collect();
    assert_eq!(unique.len(), 100, "every point that stayed was seen");
    let once = seen.iter().filter(|n| stays(**n) && **n < 300).count();
    assert_eq!(once, 100, "no point that stayed came twice");
}

/// A cursor that no page gave is refused.
pub async fn bad_cursors_are_invalid(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, vec![point(1), point(2)]).await.unwrap();
    for bytes in [vec![], b"?".to_vec(), b"no cursor".to_vec(), vec![0xff; 100]] {
        let cursor = ScrollCursor(bytes);
        let answer = store.scroll(&name, &Filter::all(), Some(&cursor), 10, Include::Payload).await;
        assert_kind(answer, ErrorKind::Invalid);
    }
}
