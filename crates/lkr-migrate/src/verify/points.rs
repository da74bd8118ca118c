use std::{collections::BTreeMap, sync::Arc};

use lkr_domain::PointId;
use lkr_vectors::{CollectionSpec, Filter, Include, Point, ScrollCursor, VectorStore};
use serde_json::Value;

use super::{Checksums, different};
use crate::{
    MigrateOptions, Result,
    checksum::{Checksum, ItemDigest, ItemHasher},
    copy::points::aliases,
    progress::Meter,
    retry::retried,
};

/// How much a dense vector may change in a store, as a share of its length. Half precision changes it by 2⁻¹¹ at most
/// (lkr-store-lmdb). So does scaling a vector of half precision to length 1 (Qdrant), but for 1e-5, which a length that is
/// computed from a few thousand 32-bit squares may be off by.
const ROUNDING: f64 = 5e-4;

/// Compares collections, points and aliases. Returns the number of points by collection, and their checksum.
///
/// # Errors
/// `Different`, with the first collection, point or alias that differs.
pub(crate) async fn compare(
    source: &Arc<dyn VectorStore>,
    target: &Arc<dyn VectorStore>,
    options: &MigrateOptions,
    meter: &Meter<'_>,
) -> Result<(BTreeMap<String, u64>, Checksum)> {
    let specs = retried(options.retry_for, "read source collections", || source.collections()).await?;
    let copies = retried(options.retry_for, "read target collections", || target.collections()).await?;
    if specs != copies {
        return Err(different(format!("the collections are {} and {}", names(&specs), names(&copies))));
    }
    let (mut counts, mut sums) = (BTreeMap::new(), Checksums::default());
    for spec in &specs {
        let count = compare_collection(spec, [source, target], options, &mut sums, meter).await?;
        counts.insert(spec.collection.name().to_owned(), count);
    }
    let live = aliases(&**source, options, "read source aliases").await?;
    if live != aliases(&**target, options, "read target aliases").await? {
        return Err(different("the aliases of the layers point to other collections".to_owned()));
    }
    Ok((counts, sums.equal("points")?))
}

async fn compare_collection(
    spec: &CollectionSpec,
    [source, target]: [&Arc<dyn VectorStore>; 2],
    options: &MigrateOptions,
    sums: &mut Checksums,
    meter: &Meter<'_>,
) -> Result<u64> {
    let (name, all) = (&spec.collection, Filter::all());
    let (mut read, mut cursor) = (0, None::<ScrollCursor>);
    loop {
        let page = retried(options.retry_for, "read source points", || {
            source.scroll(name, &all, cursor.as_ref(), options.points_per_batch, Include::All)
        });
        let page = page.await?;
        let ids: Vec<PointId> = page.points.iter().map(|point| point.id).collect();
        let copies =
            retried(options.retry_for, "read target points", || target.get(name, &ids, Include::All));
        for (point, copy) in page.points.iter().zip(copies.await?) {
            let missing = || different(format!("point {} of {name} is missing in the target", point.id));
            compare_point(spec, point, copy.ok_or_else(missing)?, sums)?;
        }
        read += page.points.len() as u64;
        meter.add(page.points.len() as u64, 0);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let counts = [(source, "count source points"), (target, "count target points")];
    for (store, operation) in counts {
        let count = retried(options.retry_for, operation, || store.count(name, &all)).await?;
        if count != read {
            return Err(different(format!(
                "{operation}: collection {name} has {count} points, expected {read}"
            )));
        }
    }
    Ok(read)
}

fn compare_point(spec: &CollectionSpec, point: &Point, mut copy: Point, sums: &mut Checksums) -> Result<()> {
    if is_rounded(point.dense.as_deref(), copy.dense.as_deref()) {
        copy.dense.clone_from(&point.dense);
    }
    let digests = [point, &copy].map(digest);
    if digests.first() != digests.last() {
        let field = differing_field(point, &copy);
        return Err(different(format!("the {field} of point {} of {} differs", point.id, spec.collection)));
    }
    let [ours, theirs] = &digests;
    sums.source.add(ours);
    sums.target.add(theirs);
    Ok(())
}

/// Whether two dense vectors differ at most by the rounding of a store.
fn is_rounded(a: Option<&[f32]>, b: Option<&[f32]>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let lost = square(a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    let all = square(a.iter().copied().map(f64::from));
    a.len() == b.len() && lost <= all * ROUNDING.powi(2)
}

fn square(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value.powi(2)).sum()
}

fn differing_field(a: &Point, b: &Point) -> &'static str {
    if a.id != b.id {
        "id"
    } else if a.origin != b.origin {
        "origin"
    } else if a.tags != b.tags {
        "tags"
    } else if a.dense.as_deref().map(bits) != b.dense.as_deref().map(bits) {
        "dense vector"
    } else if a.sparse.indices() != b.sparse.indices() || bits(a.sparse.values()) != bits(b.sparse.values()) {
        "sparse vector"
    } else {
        "payload"
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The digest of everything in a point, vectors by their bits.
fn digest(point: &Point) -> ItemDigest {
    let Point { id, origin, tags, dense, sparse, payload } = point;
    let mut hasher = ItemHasher::default();
    hasher.bytes(id.as_bytes());
    hasher.bytes(origin.doc_id.as_bytes());
    hasher.number(origin.revision);
    hasher.number(origin.ordinal.into());
    for parent in [origin.l2, origin.l3] {
        hasher.bytes(parent.as_ref().map_or(&[], |id| id.as_bytes().as_slice()));
    }
    hasher.number(tags.len() as u64);
    for (key, value) in tags.iter() {
        hasher.bytes(key.as_bytes());
        hasher.bytes(value.as_bytes());
    }
    hasher.number(dense.is_some().into());
    numbers(&mut hasher, &bits(dense.as_deref().unwrap_or_default()));
    numbers(&mut hasher, sparse.indices());
    numbers(&mut hasher, &bits(sparse.values()));
    json(&mut hasher, payload);
    hasher.finish()
}

fn numbers(hasher: &mut ItemHasher, numbers: &[u32]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    hasher.bytes(&bytes);
}

/// Hashes JSON whatever the order of its members.
fn json(hasher: &mut ItemHasher, value: &Value) {
    match value {
        Value::Object(members) => {
            hasher.bytes(b"{");
            hasher.number(members.len() as u64);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, value) in members {
                hasher.bytes(name.as_bytes());
                json(hasher, value);
            }
        }
        Value::Array(values) => {
            hasher.bytes(b"[");
            hasher.number(values.len() as u64);
            values.iter().for_each(|value| json(hasher, value));
        }
        scalar => hasher.bytes(scalar.to_string().as_bytes()),
    }
}

fn names(specs: &[CollectionSpec]) -> String {
    let name = |spec: &CollectionSpec| match &spec.dense {
        Some(dense) => format!("{} ({}, {} dimensions)", spec.collection, dense.model, dense.dims),
        None => spec.collection.to_string(),
    };
    format!("[{}]", specs.iter().map(name).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use lkr_domain::{DocId, SparseVector};
    use lkr_vectors::{Collection, DenseSpec, PointOrigin, Tags};
    use serde_json::json;

    use super::*;

    fn point() -> Point {
        Point {
            id: PointId::from_bytes([7; 16]),
            origin: PointOrigin {
                doc_id: DocId::from_bytes([9; 16]),
                revision: 3,
                ordinal: 1,
                l2: Some(PointId::from_bytes([1; 16])),
                l3: None,
            },
            tags: Tags::from([("space".to_owned(), "default".to_owned())]),
            dense: Some(vec![0.6, 0.8]),
            sparse: SparseVector::from_pairs([(1, 0.5), (9, 2.0)]),
            payload: json!({"a": 1, "b": [true, null]}),
        }
    }

    #[test]
    fn each_field_of_a_point_changes_its_digest_and_is_named() {
        let next = |value: f32| f32::from_bits(value.to_bits() + 1);
        type Change = (&'static str, fn(&mut Point));
        let changes: [Change; 8] = [
            ("origin", |point| point.origin.revision += 1),
            ("origin", |point| (point.origin.l2, point.origin.l3) = (point.origin.l3, point.origin.l2)),
            ("tags", |point| drop(point.tags.insert("a".to_owned(), String::new()))),
            ("dense vector", |point| point.dense = None),
            ("sparse vector", |point| point.sparse = SparseVector::from_pairs([(1, 0.5), (8, 2.0)])),
            ("payload", |point| point.payload = json!({"a": 1, "b": [true]})),
            ("payload", |point| point.payload = json!({"a": "1", "b": [true, null]})),
            ("id", |point| point.id = PointId::from_bytes([8; 16])),
        ];
        for (field, change) in changes {
            let mut changed = point();
            change(&mut changed);
            assert_ne!(digest(&changed), digest(&point()), "{field}");
            assert_eq!(differing_field(&changed, &point()), field);
        }
        // A vector differs by one bit.
        let mut changed = point();
        changed.dense = Some(vec![next(0.6), 0.8]);
        assert_ne!(digest(&changed), digest(&point()));
        assert_eq!(differing_field(&changed, &point()), "dense vector");
        assert_eq!(digest(&point()), digest(&point()));
    }

    #[test]
    fn dense_vectors_may_differ_by_the_rounding_of_a_store() {
        let spec = CollectionSpec {
            collection: Collection::new("l1").unwrap(),
            dense: Some(DenseSpec { model: "m".to_owned(), dims: 2 }),
        };
        let compare = |dense: Option<Vec<f32>>| {
            let mut sums = Checksums::default();
            compare_point(&spec, &point(), Point { dense, ..point() }, &mut sums)?;
            sums.equal("points")
        };
        // The third one has half precision.
        for same in [[0.6, 0.8], [0.6 * 0.999_6, 0.8 * 0.999_6], [0.600_097_66, 0.799_804_7]] {
            compare(Some(same.to_vec())).unwrap();
        }
        for other in [Some(vec![0.6006, 0.7998]), Some(vec![0.8, 0.6]), Some(vec![0.6]), None] {
            let error = compare(other).unwrap_err();
            assert!(error.to_string().contains("dense vector"), "{error}");
        }
    }
}
