use super::support::*;
use crate::{Collection, CollectionSpec, DenseSpec, ErrorKind, Filter, Include, QueryVector};

/// A second `ensure` changes nothing; the collection is described and listed.
pub async fn ensure_twice_keeps_the_collection(store: Store) {
    let name = unique_name();
    assert_eq!(store.describe(&name).await.unwrap(), None);
    store.ensure(&spec(&name, DIMS)).await.unwrap();
    store.upsert(&name, vec![point(1)]).await.unwrap();
    store.ensure(&spec(&name, DIMS)).await.unwrap();
    assert_eq!(count(&store, &name).await, 1, "the second ensure must keep the points");
    assert_eq!(store.describe(&name).await.unwrap(), Some(spec(&name, DIMS)));

    let bare = CollectionSpec { collection: unique_name(), dense: None };
    store.ensure(&bare).await.unwrap();
    assert_eq!(store.describe(&bare.collection).await.unwrap(), Some(bare.clone()));
    let all = store.collections().await.unwrap();
    assert!(all.is_sorted_by_key(|spec| spec.collection.clone()), "collections must be sorted by name");
    assert!(all.contains(&bare) && all.contains(&spec(&name, DIMS)));
}

/// Another model, other dimensions or no dense vectors: each is a conflict and changes nothing.
pub async fn ensure_with_another_specification_conflicts(store: Store) {
    let name = create_collection(&store).await;
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
pub async fn ensure_with_the_name_of_an_alias_conflicts(store: Store) {
    let (name, alias) = (create_collection(&store).await, unique_name());
    store.switch(&[(alias.clone(), name.clone())]).await.unwrap();
    assert_kind(store.ensure(&spec(&alias, DIMS)).await, ErrorKind::Conflict);
    assert_eq!(store.describe(&alias).await.unwrap(), Some(spec(&name, DIMS)));
}

/// Every method returns `NotFound`, except that `describe` returns `None` and `drop_collection` does nothing.
pub async fn operations_on_an_unknown_collection_return_not_found(store: Store) {
    let (known, name, all) = (create_collection(&store).await, unique_name(), Filter::all());
    let not_found = ErrorKind::NotFound;
    assert_eq!(store.describe(&name).await.unwrap(), None);
    store.drop_collection(&name).await.unwrap();
    assert_kind(store.switch(&[(unique_name(), name.clone())]).await, not_found);
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
    assert_eq!(store.describe(&name).await.unwrap(), None, "no operation may create the collection");
}

/// Several aliases are created and moved at once; other aliases do not change.
pub async fn switch_creates_and_moves_aliases(store: Store) {
    let (old, new, other) = (
        create_collection(&store).await,
        create_collection_with_dims(&store, 8).await,
        create_collection(&store).await,
    );
    let (a, b, untouched) = (unique_name(), unique_name(), unique_name());
    let pair = |alias: &_, target: &_| (Clone::clone(alias), Clone::clone(target));
    store.switch(&[]).await.unwrap();
    store.switch(&[pair(&a, &old), pair(&b, &old), pair(&untouched, &other)]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&old, DIMS)));
    store.switch(&[pair(&a, &new), pair(&b, &new)]).await.unwrap();
    for (alias, expected) in [(&a, spec(&new, 8)), (&b, spec(&new, 8)), (&untouched, spec(&other, DIMS))] {
        assert_eq!(store.describe(alias).await.unwrap(), Some(expected));
    }
    assert_eq!(store.describe(&old).await.unwrap(), Some(spec(&old, DIMS)), "the old collection must stay");
    let listed = store.collections().await.unwrap();
    assert!(!listed.iter().any(|spec| spec.collection == a), "an alias must not be listed as a collection");
}

/// One pair with an error, at any position, leaves all aliases unchanged.
pub async fn switch_with_one_bad_pair_changes_no_alias(store: Store) {
    let (old, new) = (create_collection(&store).await, create_collection(&store).await);
    let (alias, uncreated) = (unique_name(), unique_name());
    store.switch(&[(alias.clone(), old.clone())]).await.unwrap();
    let good = [(alias.clone(), new.clone()), (uncreated.clone(), new.clone())];
    let missing = ((unique_name(), unique_name()), ErrorKind::NotFound);
    let taken = ((old.clone(), new.clone()), ErrorKind::Conflict);
    for (bad, kind) in [missing, taken] {
        for position in 0..=good.len() {
            let mut pairs = good.to_vec();
            pairs.insert(position, bad.clone());
            assert_kind(store.switch(&pairs).await, kind);
            assert_eq!(store.describe(&alias).await.unwrap(), Some(spec(&old, DIMS)));
            assert_eq!(store.describe(&uncreated).await.unwrap(), None);
        }
    }
}

/// Two aliases can be swapped in one call; if an alias occurs twice, the last pair counts.
pub async fn switch_resolves_targets_before_changing_aliases(store: Store) {
    let (one, two) = (create_collection(&store).await, create_collection(&store).await);
    let (a, b) = (unique_name(), unique_name());
    store.switch(&[(a.clone(), one.clone()), (b.clone(), two.clone())]).await.unwrap();
    store.switch(&[(a.clone(), b.clone()), (b.clone(), a.clone())]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&two, DIMS)));
    assert_eq!(store.describe(&b).await.unwrap(), Some(spec(&one, DIMS)));
    store.switch(&[(a.clone(), two.clone()), (a.clone(), one.clone())]).await.unwrap();
    assert_eq!(store.describe(&a).await.unwrap(), Some(spec(&one, DIMS)));
}

/// Every method accepts an alias in place of its collection.
pub async fn alias_is_accepted_by_every_operation(store: Store) {
    let (name, alias, other) = (create_collection(&store).await, unique_name(), unique_name());
    store.switch(&[(alias.clone(), name.clone())]).await.unwrap();
    let mut full = with_sparse(1, &[(7, 1.0)]);
    full.dense = Some(vec![1.0, 0.0, 0.0, 0.0]);
    store.upsert(&alias, vec![full, point(2)]).await.unwrap();
    assert_eq!(count(&store, &name).await, 2);
    assert_eq!(count(&store, &alias).await, 2);
    assert_eq!(point_numbers(&search_dense(&store, &alias, &[1.0, 0.0, 0.0, 0.0]).await), [1]);
    assert_eq!(point_numbers(&search_sparse(&store, &alias, &[(7, 1.0)]).await), [1]);
    assert_eq!(scroll_all(&store, &alias, &Filter::all(), 1).await.len(), 2);
    let points = store.get(&alias, &[id(2)], Include::All).await.unwrap();
    assert_points_equal(points[0].as_ref().unwrap(), &point(2));
    assert_eq!(store.set_tags(&alias, &Filter::all(), &tags(&[("k", "v")])).await.unwrap(), 2);
    store.switch(&[(other.clone(), alias.clone())]).await.unwrap();
    assert_eq!(store.describe(&other).await.unwrap(), Some(spec(&name, DIMS)));
    assert_eq!(store.delete(&other, &Filter::all()).await.unwrap(), 2);
    assert_eq!(count(&store, &name).await, 0);
}

/// Dropping a collection by name or by alias removes its aliases; created again, the collection is empty.
pub async fn drop_collection_removes_points_and_aliases(store: Store) {
    for by_alias in [false, true] {
        let (name, alias, second) = (create_collection(&store).await, unique_name(), unique_name());
        let pairs = [(alias.clone(), name.clone()), (second.clone(), name.clone())];
        store.switch(&pairs).await.unwrap();
        let points = (0..50).map(|n| with_sparse(n, &[(1, 1.0)])).collect();
        store.upsert(&name, points).await.unwrap();
        store.drop_collection(if by_alias { &alias } else { &name }).await.unwrap();
        for removed in [&name, &alias, &second] {
            assert_eq!(store.describe(removed).await.unwrap(), None);
            assert_kind(store.count(removed, &Filter::all()).await, ErrorKind::NotFound);
        }
        store.drop_collection(&name).await.unwrap();
        store.ensure(&spec(&name, 2 * DIMS)).await.unwrap();
        assert_eq!(count(&store, &name).await, 0);
        store.upsert(&name, vec![with_sparse(1, &[(1, 2.0)])]).await.unwrap();
        let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
        assert_eq!(point_numbers(&hits), [1]);
        assert_score(&hits[0], 2.0 * idf(1, 1));
        assert_eq!(store.describe(&alias).await.unwrap(), None, "the alias must not return");
    }
}

/// Points with the same id in two collections are independent.
pub async fn equal_ids_in_two_collections_are_separate_points(store: Store) {
    let (one, two) = (create_collection(&store).await, create_collection(&store).await);
    store.upsert(&one, vec![with_sparse(1, &[(5, 1.0)]), with_sparse(2, &[(6, 1.0)])]).await.unwrap();
    store.upsert(&two, vec![with_sparse(1, &[(6, 3.0)])]).await.unwrap();
    let hits = search_sparse(&store, &two, &[(5, 1.0), (6, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [1]);
    assert_score(&hits[0], 3.0 * idf(1, 1));
    assert_eq!(store.delete(&two, &Filter::all()).await.unwrap(), 1);
    assert_eq!(count(&store, &one).await, 2);
    assert_eq!(point_numbers(&search_sparse(&store, &one, &[(5, 1.0)]).await), [1]);
}

/// Forty collections have names of maximal length and one alias each.
pub async fn forty_collections_with_long_names_coexist(store: Store) {
    let long_name = |n: u32, kind: &str| {
        let head = format!("{kind}.{n}_{}-", unique_name());
        Collection::new(format!("{head}{}", "z".repeat(64 - head.len()))).unwrap()
    };
    let pairs: Vec<_> = (0..40).map(|n| (long_name(n, "alias"), long_name(n, "name"))).collect();
    for ((_, name), n) in pairs.iter().zip(0..) {
        store.ensure(&spec(name, 1 + n as usize)).await.unwrap();
        let vector = vec![1.0; 1 + n as usize];
        store.upsert(name, vec![with_dense(n, &vector), with_sparse(n + 1, &[(n, 1.0)])]).await.unwrap();
    }
    store.switch(&pairs).await.unwrap();
    for ((alias, name), n) in pairs.iter().zip(0..) {
        assert_eq!(store.describe(alias).await.unwrap(), Some(spec(name, 1 + n as usize)));
        assert_eq!(point_numbers(&search_dense(&store, alias, &vec![1.0; 1 + n as usize]).await), [n]);
        assert_eq!(point_numbers(&search_sparse(&store, alias, &[(n, 1.0)]).await), [n + 1]);
        store.drop_collection(alias).await.unwrap();
    }
    let listed = store.collections().await.unwrap();
    assert!(!listed.iter().any(|spec| pairs.iter().any(|(_, name)| spec.collection == *name)));
}
