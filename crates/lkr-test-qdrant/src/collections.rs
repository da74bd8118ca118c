use std::collections::{BTreeMap, HashMap};

use qdrant_client::qdrant::{
    AliasDescription, ChangeAliases, CollectionClusterInfoRequest, CollectionClusterInfoResponse,
    CollectionConfig, CollectionDescription, CollectionExistsRequest, CollectionExistsResponse,
    CollectionInfo, CollectionOperationResponse, CreateAlias, CreateCollection, CreateShardKeyRequest,
    CreateShardKeyResponse, DeleteAlias, DeleteCollection, DeleteShardKeyRequest, DeleteShardKeyResponse,
    GetCollectionInfoRequest, GetCollectionInfoResponse, ListAliasesRequest, ListAliasesResponse,
    ListCollectionAliasesRequest, ListCollectionsRequest, ListCollectionsResponse, ListShardKeysRequest,
    ListShardKeysResponse, UpdateCollection, UpdateCollectionClusterSetupRequest,
    UpdateCollectionClusterSetupResponse, alias_operations::Action, collections_server::Collections,
};
use tonic::{Request, Response, Status};

use super::{Data, Stored};

/// Implements the service by these methods; the other calls are refused.
macro_rules! collections_service {
    (
        answered { $($call:ident => $method:ident($request:ty) -> $response:ty;)* }
        refused { $($other:ident($ignored:ty) -> $no:ty;)* }
    ) => {
        #[tonic::async_trait]
        impl Collections for Data {
            $(async fn $call(&self, request: Request<$request>) -> Result<Response<$response>, Status> {
                self.$method(self.admit(request)?).map(Response::new)
            })*
            $(async fn $other(&self, _: Request<$ignored>) -> Result<Response<$no>, Status> {
                Err(Status::unimplemented(stringify!($other)))
            })*
        }
    };
}

collections_service! {
    answered {
        get => describe(GetCollectionInfoRequest) -> GetCollectionInfoResponse;
        list => list_all(ListCollectionsRequest) -> ListCollectionsResponse;
        create => create_new(CreateCollection) -> CollectionOperationResponse;
        delete => drop_one(DeleteCollection) -> CollectionOperationResponse;
        update_aliases => change_aliases(ChangeAliases) -> CollectionOperationResponse;
        list_aliases => list_all_aliases(ListAliasesRequest) -> ListAliasesResponse;
    }
    refused {
        update(UpdateCollection) -> CollectionOperationResponse;
        list_collection_aliases(ListCollectionAliasesRequest) -> ListAliasesResponse;
        collection_cluster_info(CollectionClusterInfoRequest) -> CollectionClusterInfoResponse;
        collection_exists(CollectionExistsRequest) -> CollectionExistsResponse;
        update_collection_cluster_setup(UpdateCollectionClusterSetupRequest) -> UpdateCollectionClusterSetupResponse;
        create_shard_key(CreateShardKeyRequest) -> CreateShardKeyResponse;
        delete_shard_key(DeleteShardKeyRequest) -> DeleteShardKeyResponse;
        list_shard_keys(ListShardKeysRequest) -> ListShardKeysResponse;
    }
}

impl Data {
    fn describe(&self, request: GetCollectionInfoRequest) -> Result<GetCollectionInfoResponse, Status> {
        self.reach_shards()?;
        let state = self.read();
        let stored = state.stored(&request.collection_name)?;
        let info = CollectionInfo {
            config: Some(CollectionConfig {
                metadata: stored.creation.metadata.clone(),
                ..CollectionConfig::default()
            }),
            payload_schema: stored.schema.clone(),
            points_count: Some(stored.points.len() as u64),
            ..CollectionInfo::default()
        };
        Ok(GetCollectionInfoResponse { result: Some(info), time: 0.0 })
    }

    fn list_all(&self, _: ListCollectionsRequest) -> Result<ListCollectionsResponse, Status> {
        let names = self.read().collections.keys().cloned().collect::<Vec<_>>();
        let collections = names.into_iter().map(|name| CollectionDescription { name }).collect();
        Ok(ListCollectionsResponse { collections, time: 0.0 })
    }

    fn create_new(&self, creation: CreateCollection) -> Result<CollectionOperationResponse, Status> {
        let mut state = self.state();
        let name = creation.collection_name.clone();
        if state.collections.contains_key(&name) {
            return Err(Status::already_exists(format!("Collection `{name}` already exists!")));
        }
        if state.aliases.contains_key(&name) {
            return Err(Status::invalid_argument(format!("alias {name} exists")));
        }
        let stored =
            Stored { creation, points: BTreeMap::new(), schema: HashMap::new(), terms: HashMap::new() };
        state.collections.insert(name, stored);
        Ok(CollectionOperationResponse { result: true, time: 0.0 })
    }

    fn drop_one(&self, request: DeleteCollection) -> Result<CollectionOperationResponse, Status> {
        let mut state = self.state();
        let result = state.collections.remove(&request.collection_name).is_some();
        state.aliases.retain(|_, target| *target != request.collection_name);
        Ok(CollectionOperationResponse { result, time: 0.0 })
    }

    fn change_aliases(&self, request: ChangeAliases) -> Result<CollectionOperationResponse, Status> {
        let mut state = self.state();
        for action in request.actions.into_iter().filter_map(|operation| operation.action) {
            match action {
                Action::CreateAlias(CreateAlias { collection_name, alias_name }) => {
                    if state.collections.contains_key(&alias_name) {
                        return Err(Status::already_exists(alias_name));
                    }
                    if !state.collections.contains_key(&collection_name) {
                        return Err(Status::not_found(collection_name));
                    }
                    state.aliases.insert(alias_name, collection_name);
                }
                Action::DeleteAlias(DeleteAlias { alias_name }) => {
                    state.aliases.remove(&alias_name);
                }
                Action::RenameAlias(_) => return Err(Status::unimplemented("rename")),
            }
        }
        Ok(CollectionOperationResponse { result: true, time: 0.0 })
    }

    fn list_all_aliases(&self, _: ListAliasesRequest) -> Result<ListAliasesResponse, Status> {
        let state = self.state();
        let pairs = state.aliases.iter().map(|(alias_name, collection_name)| AliasDescription {
            alias_name: alias_name.clone(),
            collection_name: collection_name.clone(),
        });
        Ok(ListAliasesResponse { aliases: pairs.collect(), time: 0.0 })
    }
}
