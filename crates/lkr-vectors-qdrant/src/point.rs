//! Points as Qdrant stores them.

use std::collections::HashMap;

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_vectors::{Hit, Include, Point, PointOrigin, Tags};
use qdrant_client::qdrant::{
    self, NamedVectors, PayloadIncludeSelector, PointStruct, RetrievedPoint, ScoredPoint, Vector, Vectors,
    WithPayloadSelector, WithVectorsSelector, point_id::PointIdOptions, vector, vector_output, vectors,
    vectors_output, with_payload_selector, with_vectors_selector,
};
use uuid::Uuid;

use crate::{
    error::{Failure, InternalResult},
    tag_fields,
    value::{self, Fields},
};

/// The name of the dense vectors.
pub(crate) const DENSE: &str = "dense";
/// The name of the sparse vectors.
pub(crate) const SPARSE: &str = "sparse";

pub(crate) const DOC_ID: &str = "doc_id";
pub(crate) const REVISION: &str = "revision";
const ORDINAL: &str = "ordinal";
const L2: &str = "l2";
const L3: &str = "l3";
/// The caller's data as JSON text: Qdrant's own values have no unsigned integers.
const PAYLOAD: &str = "payload";

/// The fields of a hit.
const ORIGIN: [&str; 5] = [DOC_ID, REVISION, ORDINAL, L2, L3];

/// `payload` contains the fields of the tags.
pub(crate) fn encode(point: &Point, mut payload: Fields) -> PointStruct {
    let PointOrigin { doc_id, revision, ordinal, l2, l3 } = point.origin;
    payload.insert(DOC_ID.to_owned(), value::text(uuid(doc_id.as_bytes())));
    payload.insert(REVISION.to_owned(), value::integer(revision.cast_signed()));
    payload.insert(ORDINAL.to_owned(), value::integer(ordinal.into()));
    for (name, parent) in [(L2, l2), (L3, l3)] {
        if let Some(parent) = parent {
            payload.insert(name.to_owned(), value::text(uuid(parent.as_bytes())));
        }
    }
    payload.insert(PAYLOAD.to_owned(), value::text(point.payload.to_string()));
    PointStruct { id: Some(encode_id(point.id)), payload, vectors: Some(encode_vectors(point)) }
}

/// Every point has a sparse vector, if need be an empty one, because Qdrant counts the points that have one.
fn encode_vectors(point: &Point) -> Vectors {
    let sparse = vector::Vector::Sparse(encode_sparse(&point.sparse));
    let dense = point.dense.clone().map(|data| vector::Vector::Dense(qdrant::DenseVector { data }));
    let named = [(SPARSE, Some(sparse)), (DENSE, dense)].into_iter().filter_map(|(name, vector)| {
        Some((name.to_owned(), Vector { vector: Some(vector?), ..Vector::default() }))
    });
    let named = NamedVectors { vectors: named.collect() };
    Vectors { vectors_options: Some(vectors::VectorsOptions::Vectors(named)) }
}

pub(crate) fn encode_sparse(vector: &SparseVector) -> qdrant::SparseVector {
    qdrant::SparseVector { indices: vector.indices().to_vec(), values: vector.values().to_vec() }
}

pub(crate) fn decode(point: RetrievedPoint, with: Include) -> InternalResult<Point> {
    let RetrievedPoint { id, payload, vectors, .. } = point;
    let id = decode_id(id.as_ref())?;
    let (dense, sparse) = match with {
        Include::Content | Include::Payload => (None, SparseVector::default()),
        Include::All => decode_vectors(vectors),
    };
    let text = payload.get(PAYLOAD).and_then(value::as_text).ok_or_else(|| damaged(id, PAYLOAD))?;
    let json = serde_json::from_str(text).map_err(|_| damaged(id, PAYLOAD))?;
    let tags = match with {
        Include::Content => Tags::new(),
        Include::Payload | Include::All => tag_fields::decode(&payload)?,
    };
    let origin = decode_origin(id, &payload)?;
    Ok(Point { id, origin, tags, dense, sparse, payload: json })
}

/// Adds 0 to the score, so that −0 becomes 0 and both sort as equal.
pub(crate) fn decode_hit(point: &ScoredPoint) -> InternalResult<Hit> {
    let id = decode_id(point.id.as_ref())?;
    Ok(Hit { id, origin: decode_origin(id, &point.payload)?, score: point.score + 0.0 })
}

fn decode_origin(id: PointId, payload: &Fields) -> InternalResult<PointOrigin> {
    let integer = |name| payload.get(name).and_then(value::as_integer).ok_or_else(|| damaged(id, name));
    let bytes = |name: &'static str| {
        let text = payload.get(name).map(|field| value::as_text(field).unwrap_or(""));
        text.map(|text| parse_uuid(text).ok_or_else(|| damaged(id, name))).transpose()
    };
    Ok(PointOrigin {
        doc_id: DocId::from_bytes(bytes(DOC_ID)?.ok_or_else(|| damaged(id, DOC_ID))?),
        revision: integer(REVISION)?.cast_unsigned(),
        ordinal: integer(ORDINAL)?.try_into().map_err(|_| damaged(id, ORDINAL))?,
        l2: bytes(L2)?.map(PointId::from_bytes),
        l3: bytes(L3)?.map(PointId::from_bytes),
    })
}

fn decode_vectors(vectors: Option<qdrant::VectorsOutput>) -> (Option<Vec<f32>>, SparseVector) {
    let named = match vectors.and_then(|vectors| vectors.vectors_options) {
        Some(vectors_output::VectorsOptions::Vectors(named)) => named.vectors,
        _ => HashMap::new(),
    };
    let (mut dense, mut sparse) = (None, SparseVector::default());
    for vector in named.into_values().filter_map(|output| output.vector) {
        match vector {
            vector_output::Vector::Dense(vector) => dense = Some(vector.data),
            vector_output::Vector::Sparse(vector) => {
                sparse = SparseVector::from_pairs(vector.indices.into_iter().zip(vector.values));
            }
            vector_output::Vector::MultiDense(_) => {}
        }
    }
    (dense, sparse)
}

pub(crate) fn encode_id(id: PointId) -> qdrant::PointId {
    qdrant::PointId { point_id_options: Some(PointIdOptions::Uuid(uuid(id.as_bytes()))) }
}

pub(crate) fn decode_id(id: Option<&qdrant::PointId>) -> InternalResult<PointId> {
    let options = id.and_then(|id| id.point_id_options.as_ref());
    match options {
        Some(PointIdOptions::Uuid(text)) => parse_uuid(text).map(PointId::from_bytes),
        _ => None,
    }
    .ok_or_else(|| Failure::corrupt(format!("{options:?} is no id of a point")))
}

/// The hyphenated form, which is the one that Qdrant returns.
pub(crate) fn uuid(bytes: &[u8; 16]) -> String {
    Uuid::from_bytes(*bytes).to_string()
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    Uuid::try_parse(text).ok().map(Uuid::into_bytes)
}

/// The fields that a read returns.
pub(crate) fn payload_selector() -> WithPayloadSelector {
    // Tokens are derived from the tags.
    include([DOC_ID, REVISION, ORDINAL, L2, L3, PAYLOAD, tag_fields::TAGS])
}

/// The fields that a hit needs.
pub(crate) fn origin_selector() -> WithPayloadSelector {
    include(ORIGIN)
}

fn include<const N: usize>(fields: [&str; N]) -> WithPayloadSelector {
    let fields = fields.map(str::to_owned).to_vec();
    let options = with_payload_selector::SelectorOptions::Include(PayloadIncludeSelector { fields });
    WithPayloadSelector { selector_options: Some(options) }
}

pub(crate) const fn vectors_selector(with: Include) -> WithVectorsSelector {
    let options = with_vectors_selector::SelectorOptions::Enable(matches!(with, Include::All));
    WithVectorsSelector { selector_options: Some(options) }
}

fn damaged(id: PointId, field: &str) -> Failure {
    Failure::corrupt(format!("the field {field} of point {id} is damaged"))
}
