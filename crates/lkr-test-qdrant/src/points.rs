use std::collections::{BTreeMap, HashMap};

use qdrant_client::qdrant::{
    BatchResult, ClearPayloadPoints, CountPoints, CountResponse, CountResult, CreateFieldIndexCollection,
    CreateVectorNameRequest, DeleteFieldIndexCollection, DeletePayloadPoints, DeletePointVectors,
    DeletePoints, DeleteVectorNameRequest, DenseVector, DiscoverBatchPoints, DiscoverBatchResponse,
    DiscoverPoints, DiscoverResponse, FacetCounts, FacetResponse, Filter, GetPoints, GetResponse,
    NamedVectorsOutput, PayloadSchemaInfo, PayloadSchemaType, PointId, PointStruct, PointsOperationResponse,
    PointsSelector, QueryBatchPoints, QueryBatchResponse, QueryGroupsResponse, QueryPointGroups, QueryPoints,
    QueryResponse, RecommendBatchPoints, RecommendBatchResponse, RecommendGroupsResponse,
    RecommendPointGroups, RecommendPoints, RecommendResponse, RetrievedPoint, ScrollPoints, ScrollResponse,
    SearchBatchPoints, SearchBatchResponse, SearchGroupsResponse, SearchMatrixOffsetsResponse,
    SearchMatrixPairsResponse, SearchMatrixPoints, SearchPointGroups, SearchPoints, SearchResponse,
    SetPayloadPoints, SparseVector, UpdateBatchPoints, UpdateBatchResponse, UpdatePointVectors, UpdateResult,
    UpdateStatus, UpsertPoints, Value, VectorOutput, VectorsOutput, WithPayloadSelector, WithVectorsSelector,
    WriteOrdering, point_id::PointIdOptions, points_selector::PointsSelectorOneOf, points_server::Points,
    vector, vector_output, vectors, vectors_output, with_payload_selector, with_vectors_selector,
};
use tokio::task::block_in_place;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{Data, Stored, StoredPoint, Write, filter, search};

/// Implements the service by these methods; the other calls are refused.
macro_rules! points_service {
    (
        answered { $($call:ident => $method:ident($request:ty) -> $response:ty;)* }
        refused { $($other:ident($ignored:ty) -> $no:ty;)* }
    ) => {
        #[tonic::async_trait]
        impl Points for Data {
            $(async fn $call(&self, request: Request<$request>) -> Result<Response<$response>, Status> {
                let delay = self.read().points_delay;
                tokio::time::sleep(delay).await;
                let request = self.admit(request)?;
                self.reach_shards()?;
                block_in_place(|| self.$method(request)).map(Response::new)
            })*
            $(async fn $other(&self, _: Request<$ignored>) -> Result<Response<$no>, Status> {
                Err(Status::unimplemented(stringify!($other)))
            })*
        }
    };
}

points_service! {
    answered {
        upsert => store(UpsertPoints) -> PointsOperationResponse;
        delete => remove(DeletePoints) -> PointsOperationResponse;
        get => retrieve(GetPoints) -> GetResponse;
        set_payload => set_fields(SetPayloadPoints) -> PointsOperationResponse;
        create_field_index => add_index(CreateFieldIndexCollection) -> PointsOperationResponse;
        scroll => page(ScrollPoints) -> ScrollResponse;
        count => count_points(CountPoints) -> CountResponse;
        query_batch => answer_all(QueryBatchPoints) -> QueryBatchResponse;
    }
    refused {
        update_vectors(UpdatePointVectors) -> PointsOperationResponse;
        delete_vectors(DeletePointVectors) -> PointsOperationResponse;
        overwrite_payload(SetPayloadPoints) -> PointsOperationResponse;
        delete_payload(DeletePayloadPoints) -> PointsOperationResponse;
        clear_payload(ClearPayloadPoints) -> PointsOperationResponse;
        delete_field_index(DeleteFieldIndexCollection) -> PointsOperationResponse;
        create_vector_name(CreateVectorNameRequest) -> PointsOperationResponse;
        delete_vector_name(DeleteVectorNameRequest) -> PointsOperationResponse;
        search(SearchPoints) -> SearchResponse;
        search_batch(SearchBatchPoints) -> SearchBatchResponse;
        search_groups(SearchPointGroups) -> SearchGroupsResponse;
        recommend(RecommendPoints) -> RecommendResponse;
        recommend_batch(RecommendBatchPoints) -> RecommendBatchResponse;
        recommend_groups(RecommendPointGroups) -> RecommendGroupsResponse;
        discover(DiscoverPoints) -> DiscoverResponse;
        discover_batch(DiscoverBatchPoints) -> DiscoverBatchResponse;
        update_batch(UpdateBatchPoints) -> UpdateBatchResponse;
        query(QueryPoints) -> QueryResponse;
        query_groups(QueryPointGroups) -> QueryGroupsResponse;
        facet(FacetCounts) -> FacetResponse;
        search_matrix_pairs(SearchMatrixPoints) -> SearchMatrixPairsResponse;
        search_matrix_offsets(SearchMatrixPoints) -> SearchMatrixOffsetsResponse;
    }
}

impl Data {
    fn store(&self, request: UpsertPoints) -> Result<PointsOperationResponse, Status> {
        self.record("upsert", request.wait, request.ordering, request.points.len());
        let mut state = self.state();
        let stored = state.stored_mut(&request.collection_name)?;
        for point in request.points {
            let id = id_number(point.id.as_ref().unwrap())?;
            let point = decode(point);
            for term in point.sparse.iter().flat_map(BTreeMap::keys) {
                let next = stored.terms.len();
                stored.terms.entry(*term).or_insert(next);
            }
            stored.points.insert(id, point);
        }
        completed()
    }

    fn remove(&self, request: DeletePoints) -> Result<PointsOperationResponse, Status> {
        self.record("delete", request.wait, request.ordering, 0);
        let mut state = self.state();
        let stored = state.stored_mut(&request.collection_name)?;
        for id in selected_ids(stored, request.points)? {
            stored.points.remove(&id);
        }
        completed()
    }

    fn set_fields(&self, request: SetPayloadPoints) -> Result<PointsOperationResponse, Status> {
        self.record("set_payload", request.wait, request.ordering, 0);
        let mut state = self.state();
        let stored = state.stored_mut(&request.collection_name)?;
        assert_eq!(request.key, None);
        for id in selected_ids(stored, request.points_selector)? {
            stored.points.get_mut(&id).unwrap().payload.extend(request.payload.clone());
        }
        completed()
    }

    fn add_index(&self, request: CreateFieldIndexCollection) -> Result<PointsOperationResponse, Status> {
        self.record("create_field_index", request.wait, request.ordering, 0);
        let mut state = self.state();
        let stored = state.stored_mut(&request.collection_name)?;
        let schema = PayloadSchemaInfo {
            data_type: PayloadSchemaType::UnknownType.into(),
            params: request.field_index_params,
            points: None,
        };
        stored.schema.insert(request.field_name, schema);
        completed()
    }

    fn retrieve(&self, request: GetPoints) -> Result<GetResponse, Status> {
        let state = self.read();
        let stored = state.stored(&request.collection_name)?;
        let ids: Vec<u128> = request.ids.iter().map(id_number).collect::<Result<_, _>>()?;
        let found = ids.into_iter().filter_map(|id| Some((id, stored.points.get(&id)?)));
        let select =
            |(id, point)| encode(id, point, request.with_payload.as_ref(), request.with_vectors.as_ref());
        Ok(GetResponse { result: found.map(select).collect(), ..GetResponse::default() })
    }

    fn page(&self, request: ScrollPoints) -> Result<ScrollResponse, Status> {
        let state = self.read();
        let stored = state.stored(&request.collection_name)?;
        let from = request.offset.as_ref().map(id_number).transpose()?.unwrap_or(0);
        let filter = request.filter.unwrap_or_default();
        let (mut result, mut next_page_offset) = (Vec::new(), None);
        for (id, point) in stored.points.range(from..) {
            if !filter::matches(&filter, *id, point)? {
                continue;
            }
            if result.len() == request.limit.unwrap_or(10) as usize {
                next_page_offset = Some(point_id(*id));
                break;
            }
            result.push(encode(*id, point, request.with_payload.as_ref(), request.with_vectors.as_ref()));
        }
        Ok(ScrollResponse { result, next_page_offset, ..ScrollResponse::default() })
    }

    fn count_points(&self, request: CountPoints) -> Result<CountResponse, Status> {
        assert_eq!(request.exact, Some(true));
        let state = self.read();
        let stored = state.stored(&request.collection_name)?;
        let count = matching_ids(stored, &request.filter.unwrap_or_default())?.len() as u64;
        Ok(CountResponse { result: Some(CountResult { count }), ..CountResponse::default() })
    }

    fn answer_all(&self, request: QueryBatchPoints) -> Result<QueryBatchResponse, Status> {
        let state = self.read();
        let stored = state.stored(&request.collection_name)?;
        let answer = |query: &QueryPoints| Ok(BatchResult { result: search::answer(stored, query)? });
        let result = request.query_points.iter().map(answer).collect::<Result<_, Status>>()?;
        Ok(QueryBatchResponse { result, ..QueryBatchResponse::default() })
    }

    fn record(&self, call: &'static str, wait: Option<bool>, ordering: Option<WriteOrdering>, points: usize) {
        let ordering = ordering.map(|ordering| ordering.r#type);
        self.state().writes.push(Write { call, wait, ordering, points });
    }
}

fn completed() -> Result<PointsOperationResponse, Status> {
    let result = UpdateResult { operation_id: Some(1), status: UpdateStatus::Completed.into() };
    Ok(PointsOperationResponse { result: Some(result), ..PointsOperationResponse::default() })
}

fn selected_ids(stored: &Stored, selector: Option<PointsSelector>) -> Result<Vec<u128>, Status> {
    match selector.and_then(|selector| selector.points_selector_one_of) {
        Some(PointsSelectorOneOf::Filter(filter)) => matching_ids(stored, &filter),
        other => Err(Status::unimplemented(format!("selector {other:?}"))),
    }
}

fn matching_ids(stored: &Stored, filter: &Filter) -> Result<Vec<u128>, Status> {
    let mut ids = Vec::new();
    for (id, point) in &stored.points {
        if filter::matches(filter, *id, point)? {
            ids.push(*id);
        }
    }
    Ok(ids)
}

/// A stored point replaces all of the old one.
fn decode(point: PointStruct) -> StoredPoint {
    let mut stored = StoredPoint { payload: point.payload, ..StoredPoint::default() };
    let named = match point.vectors.and_then(|vectors| vectors.vectors_options) {
        Some(vectors::VectorsOptions::Vectors(named)) => named.vectors,
        other => panic!("expected named vectors, got {other:?}"),
    };
    for (name, vector) in named {
        match (name.as_str(), vector.vector) {
            ("dense", Some(vector::Vector::Dense(vector))) => stored.dense = Some(normalized(&vector.data)),
            ("sparse", Some(vector::Vector::Sparse(vector))) => {
                stored.sparse = Some(vector.indices.into_iter().zip(vector.values).collect());
            }
            other => panic!("unexpected vector {other:?}"),
        }
    }
    stored
}

fn encode(
    id: u128,
    point: &StoredPoint,
    with_payload: Option<&WithPayloadSelector>,
    with_vectors: Option<&WithVectorsSelector>,
) -> RetrievedPoint {
    let options = with_vectors.and_then(|selector| selector.selector_options.as_ref());
    let vectors = matches!(options, Some(with_vectors_selector::SelectorOptions::Enable(true))).then(|| {
        let dense = point.dense.clone().map(|data| vector_output::Vector::Dense(DenseVector { data }));
        let sparse = point.sparse.as_ref().map(|terms| {
            let (indices, values) = terms.iter().map(|(term, weight)| (*term, *weight)).unzip();
            vector_output::Vector::Sparse(SparseVector { values, indices })
        });
        let named = [("dense", dense), ("sparse", sparse)].into_iter().filter_map(|(name, vector)| {
            Some((name.to_owned(), VectorOutput { vector: Some(vector?), ..VectorOutput::default() }))
        });
        let named = NamedVectorsOutput { vectors: named.collect() };
        VectorsOutput { vectors_options: Some(vectors_output::VectorsOptions::Vectors(named)) }
    });
    let payload = selected(&point.payload, with_payload);
    RetrievedPoint { id: Some(point_id(id)), payload, vectors, ..RetrievedPoint::default() }
}

pub(super) fn selected(
    payload: &HashMap<String, Value>,
    with_payload: Option<&WithPayloadSelector>,
) -> HashMap<String, Value> {
    match with_payload.and_then(|selector| selector.selector_options.as_ref()) {
        Some(with_payload_selector::SelectorOptions::Include(include)) => {
            let is_included = |(name, _): &(&String, &Value)| include.fields.contains(name);
            payload.iter().filter(is_included).map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        Some(with_payload_selector::SelectorOptions::Enable(true)) => payload.clone(),
        _ => HashMap::new(),
    }
}

/// As Qdrant does it: a vector that is 0, or has length 1 up to a rounding error, stays as it was sent.
pub(super) fn normalized(vector: &[f32]) -> Vec<f32> {
    let squared = vector.iter().map(|x| x * x).sum::<f32>();
    if squared < f32::EPSILON || (squared - 1.0).abs() <= 1.0e-6 {
        return vector.to_vec();
    }
    vector.iter().map(|x| x / squared.sqrt()).collect()
}

pub(super) fn id_number(id: &PointId) -> Result<u128, Status> {
    match id.point_id_options.as_ref() {
        Some(PointIdOptions::Uuid(text)) => {
            Uuid::parse_str(text).map(|uuid| uuid.as_u128()).map_err(|_| Status::invalid_argument(text))
        }
        other => Err(Status::invalid_argument(format!("id {other:?}"))),
    }
}

pub(super) fn point_id(id: u128) -> PointId {
    PointId { point_id_options: Some(PointIdOptions::Uuid(Uuid::from_u128(id).to_string())) }
}
