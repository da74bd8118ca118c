use super::support::*;
use crate::{Collection, CollectionSpec, DenseSpec, ErrorKind, Filter, Include, QueryVector};

/// A collection is made once, described by its name, and listed.
pub async fn ensure_makes_a_collection_once(store: Store) {
    let name = fresh();
    assert_eq!(store.describe(&name).await.unwrap(), None);
    store.ensure(&spec(&name, DIMS)).await.unwrap();
    store.upsert(&name, vec![point(1)]).await.unwrap();
    store.ensure(&spec(&name, DIMS)).await.unwrap();
    assert_eq!(count(&store, &name).await, 1, "a second ensure keeps the points");
    assert_eq!(store.describe(&name).await.unwrap(), Some(spec(&name, DIMS)));

    let bare = CollectionSpec { collection: fresh(), dense: None };
    store.ensure(&bare).await.unwrap();
    assert_eq!(store.describe(&bare.collection).await.unwrap(), Some(bare.clone()));
    let all = store.collections().await.unwrap();
    assert!(all.is_sorted_by_key(|spec| spec.collection.clone()), "sorted by name");
    assert!(all.contains(&bare) && all.contains(&spec(&name, DIMS)));
}

/// Another model, other dimensions, or none: each conflicts and changes nothing.
pub async fn ensure_of_another_specification_conflicts(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, vec![point(1)]).await.unwrap();
    let other_model = DenseSpec { model: "another".to_owned(), dims: DIMS };
    for dense in [spec(&name, DIMS + 1).dense, Some(other_model), None] {
        let other = CollectionSpec { collection: name.clone(), dense };
        assert_kind(store.ensure(&other).await, ErrorKind::Conflict);
    }
    assert_eq!(store.describe(&name).await.unwrap(), Some(spec(&name, DIMS)));
    assert_eq!(count(&store, &name).await, 1);
}

/// A collection cannot take the name of an alias.
pub async fn ensure_of_an_alias_conflicts(store: Store) {
    let (name, alias) = (made(&store).await, fresh());
    store.switch(&[(alias.clone(), name.clone())]).await.unwrap();
    assert_kind(store.ensure(&spec(&alias, DIMS)).await, ErrorKind::Conflict);
    assert_eq!(store.describe(&alias).await.unwrap(), Some(spec(&name, DIMS)));
}

/// Every method says `NotFound`, but `describe` answers `None` and a drop does nothing.
pub async fn unknown_collections_are_not_found(store: Store) {
    let (known, name, all) = (made(&store).await, fresh(), Filter::all());
    let not_found = ErrorKind::NotFound;
    assert_eq!(store.describe(&name).await.unwrap(), None);
    store.drop_collection(&name).await.unwrap();
    assert_kind(store.switch(&[(fresh(), name.clone())]).await, not_found);
    assert_kind(store.upsert(&name, vec![point(1)]).await, not_found);
    assert_kind(store.delete(&name, &all).await, not_found);
    assert_kind(store.set_tags(&name, &all, &tags(&[])).await, not_found);
    assert_kind(store.get(&name, &[id(1)], Include::All).await, not_found);
    assert_kind(store.scroll(&name, &all, None, 10, Include::All).await, not_found);
    assert_kind(store.count(&name, &all).await, not_found);
    let terms = QueryVector::Sparse(sparse(&[(1, 1.0)]));
    for vector in [terms.clone(), QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0])] {
        let batch = [query(&known, terms.clone(), &all, 1), query(&name, vector, &all, 1)];
        assert_kind(store.query_batch(&batch).await, not_found);
    }
    assert_eq!(store.describe(&name).await.unwrap(), None, "no method makes a collection");
}

/// Aliases are made and moved, several in one step; no alias but those is touched.
pub async fn switch_makes_and_moves_aliases(store: Store) {
    let (old, new, other) = (made(&store).await, made_with(&store, 8).await, made(&store).await);
    let (a, b, still) = (fresh(), fresh(), fresh());
    let pair = |alias: &_, target: &_| (Clone::clone(alias), Clone::clone(target));
    store.switch(&[]).await.unwrap();
    store.switch(&[pair(&a, &old), pair(&b, &old), pair(&still, &other)]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&old, DIMS)));
    store.switch(&[pair(&a, &new), pair(&b, &new)]).await.unwrap();
    for (alias, expected) in [(&a, spec(&new, 8)), (&b, spec(&new, 8)), (&still, spec(&other, DIMS))] {
        assert_eq!(store.describe(alias).await.unwrap(), Some(expected));
    }
    assert_eq!(store.describe(&old).await.unwrap(), Some(spec(&old, DIMS)), "its collection stays");
    let listed = store.collections().await.unwrap();
    assert!(!listed.iter().any(|spec| spec.collection == a), "an alias is no collection");
}

/// One pair that cannot be switched leaves all aliases as they were, wherever it stands.
pub async fn switch_is_done_whole_or_not_at_all(store: Store) {
    let (old, new) = (made(&store).await, made(&store).await);
    let (alias, unmade) = (fresh(), fresh());
    store.switch(&[(alias.clone(), old.clone())]).await.unwrap();
    let good = [(alias.clone(), new.clone()), (unmade.clone(), new.clone())];
    let missing = ((fresh(), fresh()), ErrorKind::NotFound);
    let taken = ((old.clone(), new.clone()), ErrorKind::Conflict);
    for (bad, kind) in [missing, taken] {
        for at in 0..=good.len() {
            let mut step = good.to_vec();
            step.insert(at, bad.clone());
            assert_kind(store.switch(&step).await, kind);
            assert_eq!(store.describe(&alias).await.unwrap(), Some(spec(&old, DIMS)));
            assert_eq!(store.describe(&unmade).await.unwrap(), None);
        }
    }
}

/// Two aliases swap places in one step, and the last pair of an alias counts.
pub async fn switch_resolves_aliases_before_the_step(store: Store) {
    let (one, two) = (made(&store).await, made(&store).await);
    let (a, b) = (fresh(), fresh());
    store.switch(&[(a.clone(), one.clone()), (b.clone(), two.clone())]).await.unwrap();
    store.switch(&[(a.clone(), b.clone()), (b.clone(), a.clone())]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&two, DIMS)));
    assert_eq!(store.describe(&b).await.unwrap(), Some(spec(&one, DIMS)));
    store.switch(&[(a.clone(), two.clone()), (a.clone(), one.clone())]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&one, DIMS)));
}

/// An alias stands for its collection in every method.
pub async fn an_alias_will_do_everywhere(store: Store) {
    let (name, alias, other) = (made(&store).await, fresh(), fresh());
    store.switch(&[(alias.clone(), name.clone())]).await.unwrap();
    let mut full = with_sparse(1, &[(7, 1.0)]);
    full.dense = Some(vec![1.0, 0.0, 0.0, 0.0]);
    store.upsert(&alias, vec![full, point(2)]).await.unwrap();
    assert_eq!(count(&store, &name).await, 2);
    assert_eq!(count(&store, &alias).await, 2);
    assert_eq!(numbers(&ask_dense(&store, &alias, &[1.0, 0.0, 0.0, 0.0]).await), [1]);
    assert_eq!(numbers(&ask_sparse(&store, &alias, &[(7, 1.0)]).await), [1]);
    assert_eq!(scrolled(&store, &alias, &Filter::all(), 1).await.len(), 2);
    let found = store.get(&alias, &[id(2)], Include::All).await.unwrap();
    assert_same(found[0].as_ref().unwrap(), &point(2));
    assert_eq!(store.set_tags(&alias, &Filter::all(), &tags(&[("k", "v")])).await.unwrap(), 2);
    store.switch(&[(other.clone(), alias.clone())]).await.unwrap();
    assert_eq!(store.describe(&other).await.unwrap(), Some(spec(&name, DIMS)));
    assert_eq!(store.delete(&other, &Filter::all()).await.unwrap(), 2);
    assert_eq!(count(&store, &name).await, 0);
}

/// A dropped collection is gone with its aliases, also when it is dropped by one; made anew it is empty.
pub async fn drop_removes_points_and_aliases(store: Store) {
    for by_alias in [false, true] {
        let (name, alias, second) = (made(&store).await, fresh(), fresh());
        let pairs = [(alias.clone(), name.clone()), (second.clone(), name.clone())];
        store.switch(&pairs).await.unwrap();
        let points = (0..50).map(|n| with_sparse(n, &[(1, 1.0)])).collect();
        store.upsert(&name, points).await.unwrap();
        store.drop_collection(if by_alias { &alias } else { &name }).await.unwrap();
        for gone in [&name, &alias, &second] {
            assert_eq!(store.describe(gone).await.unwrap(), None);
            assert_kind(store.count(gone, &Filter::all()).await, ErrorKind::NotFound);
        }
        store.drop_collection(&name).await.unwrap();
        store.ensure(&spec(&name, 2 * DIMS)).await.unwrap();
        assert_eq!(count(&store, &name).await, 0);
        store.upsert(&name, vec![with_sparse(1, &[(1, 2.0)])]).await.unwrap();
        let hits = ask_sparse(&store, &name, &[(1, 1.0)]).await;
        assert_eq!(numbers(&hits), [1]);
        assert_score(&hits[0], 2.0 * idf(1, 1));
        assert_eq!(store.describe(&alias).await.unwrap(), None, "an alias does not come back");
    }
}

/// The same id in two collections is two points.
pub async fn collections_do_not_mix(store: Store) {
    let (one, two) = (made(&store).await, made(&store).await);
    store.upsert(&one, vec![with_sparse(1, &[(5, 1.0)]), with_sparse(2, &[(6, 1.0)])]).await.unwrap();
    store.upsert(&two, vec![with_sparse(1, &[(6, 3.0)])]).await.unwrap();
    let hits = ask_sparse(&store, &two, &[(5, 1.0), (6, 1.0)]).await;
    assert_eq!(numbers(&hits), [1]);
    assert_score(&hits[0], 3.0 * idf(1, 1));
    assert_eq!(store.delete(&two, &Filter::all()).await.unwrap(), 1);
    assert_eq!(count(&store, &one).await, 2);
    assert_eq!(numbers(&ask_sparse(&store, &one, &[(5, 1.0)]).await), [1]);
}

/// Dozens of collections, with names as long as they may be, each with its alias.
pub async fn many_collections_live_side_by_side(store: Store) {
    let long = |n: u32, kind: &str| {
        let head = format!("{kind}.{n}_{}-", fresh());
        Collection::new(format!("{head}{}", "z".repeat(64 - head.len()))).unwrap()
    };
    let pairs: Vec<_> = (0..40).map(|n| (long(n, "alias"), long(n, "own"))).collect();
    for ((_, name), n) in pairs.iter().zip(0..) {
        store.ensure(&spec(name, 1 + n as usize)).await.unwrap();
        let vector = vec![1.0; 1 + n as usize];
        store.upsert(name, vec![with_dense(n, &vector), with_sparse(n + 1, &[(n, 1.0)])]).await.unwrap();
    }
    store.switch(&pairs).await.unwrap();
    for ((alias, name), n) in pairs.iter().zip(0..) {
        assert_eq!(store.describe(alias).await.unwrap(), Some(spec(name, 1 + n as usize)));
        assert_eq!(numbers(&ask_dense(&store, alias, &vec![1.0; 1 + n as usize]).await), [n]);
        assert_eq!(numbers(&ask_sparse(&store, alias, &[(n, 1.0)]).await), [n + 1]);
        store.drop_collection(alias).await.unwrap();
    }
    let listed = store.collections().await.unwrap();
    assert!(!listed.iter().any(|spec| pairs.iter().any(|(_, name)| spec.collection == *name)));
}
