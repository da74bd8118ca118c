//! Collections and aliases.

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, ErrorKind};
use qdrant_client::qdrant::{
    AliasOperations, BinaryQuantization, ChangeAliases, CollectionInfo, CreateAlias, CreateCollection,
    CreateFieldIndexCollection, DeleteCollection, Distance, GetCollectionInfoRequest, HnswConfigDiff,
    ListAliasesRequest, ListCollectionsRequest, Modifier, OptimizersConfigDiff, QuantizationConfig,
    QuantizationType, ScalarQuantization, SparseVectorConfig, SparseVectorParams, StrictModeConfig,
    VectorParams, VectorParamsMap, VectorsConfig, alias_operations::Action, quantization_config,
    vectors_config,
};

use crate::{
    QdrantOptions, Quantization,
    error::{Failure, InternalResult},
    indexes::{self, FieldIndex},
    metadata,
    names::Names,
    point::{DENSE, SPARSE},
    shared::Shared,
    write::strong,
};

/// How many collections are described at once.
const CONCURRENT_DESCRIPTIONS: usize = 8;

/// Qdrant scans collections below this size, in KiB, and searches a graph above it. It is Qdrant's own default.
const MIN_SCANNED_KIB: u64 = 10_000;

/// At least this number of vectors is scanned, so that searches among a thousand are exact.
const MIN_SCANNED_VECTORS: u64 = 2_000;

impl Shared {
    pub(crate) async fn describe(&self, name: &Collection) -> InternalResult<Option<CollectionSpec>> {
        let info = self.info(&self.names.full(name)).await?;
        Ok(info.and_then(|info| self.spec_of(info)))
    }

    pub(crate) async fn list_collections(&self) -> InternalResult<Vec<CollectionSpec>> {
        let list = || async { self.connection.collections().list(ListCollectionsRequest {}).await };
        let listed = self.connection.read(list).await?.collections;
        let ours = listed.into_iter().filter(|listed| self.names.strip(&listed.name).is_some());
        let specs = stream::iter(ours.map(|listed| async move { self.info(&listed.name).await }));
        let specs: Vec<_> = specs.buffer_unordered(CONCURRENT_DESCRIPTIONS).try_collect().await?;
        let mut specs: Vec<CollectionSpec> =
            specs.into_iter().flatten().filter_map(|info| self.spec_of(info)).collect();
        specs.sort_by(|a, b| a.collection.cmp(&b.collection));
        Ok(specs)
    }

    /// The aliases of collections with this prefix, each with its collection.
    pub(crate) async fn aliases(&self) -> InternalResult<BTreeMap<Collection, Collection>> {
        let list = || async { self.connection.collections().list_aliases(ListAliasesRequest {}).await };
        let listed = self.connection.read(list).await?.aliases;
        let pairs = listed.iter().filter_map(|alias| {
            Some((self.names.strip(&alias.alias_name)?, self.names.strip(&alias.collection_name)?))
        });
        Ok(pairs.collect())
    }

    /// The caller holds the writes.
    pub(crate) async fn ensure(&self, spec: &CollectionSpec) -> InternalResult<()> {
        let name = &spec.collection;
        if self.aliases().await?.contains_key(name) {
            return Err(Failure::conflict(format!("an alias is named {name}")));
        }
        if self.info(&self.names.full(name)).await?.is_none() {
            match self.create(spec).await {
                // Another process was faster, or the first of two attempts.
                Err(failure) if matches!(failure.kind, ErrorKind::Conflict | ErrorKind::Invalid) => {
                    tracing::debug!(collection = %name, reason = failure.message, "the collection exists meanwhile");
                }
                result => result?,
            }
        }
        let info = self.info(&self.names.full(name)).await?;
        let info = info.ok_or_else(|| Failure::internal(format!("collection {name} was not created")))?;
        let missing =
            indexes::permanent().into_iter().filter(|index| !info.payload_schema.contains_key(index.field()));
        let missing: Vec<FieldIndex> = missing.collect();
        if self.spec_of(info).as_ref() != Some(spec) {
            return Err(Failure::conflict(format!("collection {name} exists with another specification")));
        }
        for index in missing {
            self.create_index(name, &index).await?;
        }
        Ok(())
    }

    /// The caller holds the writes.
    pub(crate) async fn switch(&self, aliases: &[(Collection, Collection)]) -> InternalResult<()> {
        let existing = self.aliases().await?;
        let mut targets = BTreeMap::new();
        for (alias, target) in aliases {
            let resolved = existing.get(target).unwrap_or(target);
            let is_collection = !existing.contains_key(alias) && self.describe(alias).await?.is_some();
            if is_collection {
                return Err(Failure::conflict(format!("a collection is named {alias}")));
            }
            if self.describe(resolved).await?.is_none() {
                return Err(Failure::not_found(format!("no collection or alias {target}")));
            }
            targets.insert(alias.clone(), resolved.clone());
        }
        if targets.is_empty() {
            return Ok(());
        }
        let actions: Vec<AliasOperations> =
            targets.iter().map(|(alias, target)| self.pointing(alias, target)).collect();
        let timeout = Some(self.write_timeout_seconds());
        let change = ChangeAliases { actions, timeout };
        let ask = || async { self.connection.collections().update_aliases(change.clone()).await };
        let result = self.write(ask, |_| true).await;
        self.forget_specs();
        result.map(drop)
    }

    /// Creating an alias that exists moves it.
    fn pointing(&self, alias: &Collection, target: &Collection) -> AliasOperations {
        let (alias_name, collection_name) = (self.names.full(alias), self.names.full(target));
        AliasOperations { action: Some(Action::CreateAlias(CreateAlias { alias_name, collection_name })) }
    }

    /// Qdrant removes the aliases of a collection with it. The caller holds the writes.
    pub(crate) async fn drop_collection(&self, collection: &Collection) -> InternalResult<()> {
        let timeout = Some(self.write_timeout_seconds());
        let delete = DeleteCollection { collection_name: self.names.full(collection), timeout };
        let ask = || async { self.connection.collections().delete(delete.clone()).await };
        let result = self.write(ask, |_| true).await;
        self.forget_specs();
        self.forget_indexes(collection);
        match result {
            Err(failure) if failure.kind != ErrorKind::NotFound => Err(failure),
            _ => Ok(()),
        }
    }

    /// Adds indexes that filters would use, in the background. Filters are exact without them, and slower.
    pub(crate) fn add_indexes(
        self: &std::sync::Arc<Self>,
        collection: &Collection,
        indexes: Vec<FieldIndex>,
    ) {
        for index in indexes {
            if !self.note_index(collection, &index) {
                continue;
            }
            let (shared, collection) = (std::sync::Arc::clone(self), collection.clone());
            tokio::spawn(async move {
                if let Err(failure) = shared.create_index(&collection, &index).await {
                    tracing::warn!(%collection, field = index.field(), error = failure.message, "no index was added");
                }
            });
        }
    }

    async fn create_index(&self, collection: &Collection, index: &FieldIndex) -> InternalResult<()> {
        let create = CreateFieldIndexCollection {
            collection_name: self.names.full(collection),
            wait: Some(true),
            field_name: index.field().to_owned(),
            field_type: Some(index.field_type().into()),
            field_index_params: index.params(),
            ordering: strong(),
            timeout: Some(self.write_timeout_seconds()),
        };
        let ask = || async { self.connection.points().create_field_index(create.clone()).await };
        self.write_points(ask).await
    }

    async fn create(&self, spec: &CollectionSpec) -> InternalResult<()> {
        let mut create = creation(spec, &self.names, &self.options);
        create.timeout = Some(self.write_timeout_seconds());
        let ask = || async { self.connection.collections().create(create.clone()).await };
        self.write(ask, |_| true).await.map(drop)
    }

    /// `None` if there is no collection and no alias with this name.
    async fn info(&self, full_name: &str) -> InternalResult<Option<CollectionInfo>> {
        let request = GetCollectionInfoRequest { collection_name: full_name.to_owned() };
        let get = || async { self.connection.collections().get(request.clone()).await };
        match self.connection.read(get).await {
            Ok(reply) => Ok(reply.result),
            Err(failure) if failure.kind == ErrorKind::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn spec_of(&self, info: CollectionInfo) -> Option<CollectionSpec> {
        metadata::decode(&info.config?.metadata, &self.names)
    }
}

fn creation(spec: &CollectionSpec, names: &Names, options: &QdrantOptions) -> CreateCollection {
    let scanned_kib = spec.dense.as_ref().map_or(MIN_SCANNED_KIB, scanned_kib);
    let dense = spec.dense.as_ref().map(|dense| (DENSE.to_owned(), dense_params(dense, options)));
    let dense = VectorParamsMap { map: dense.into_iter().collect() };
    let sparse = SparseVectorParams { modifier: Some(Modifier::Idf.into()), index: None };
    CreateCollection {
        collection_name: names.full(&spec.collection),
        shard_number: Some(options.shard_number.get()),
        replication_factor: Some(options.replication_factor.get()),
        write_consistency_factor: Some(options.write_consistency_factor.get()),
        vectors_config: Some(VectorsConfig { config: Some(vectors_config::Config::ParamsMap(dense)) }),
        sparse_vectors_config: Some(SparseVectorConfig { map: HashMap::from([(SPARSE.to_owned(), sparse)]) }),
        hnsw_config: Some(HnswConfigDiff {
            full_scan_threshold: Some(scanned_kib),
            ..HnswConfigDiff::default()
        }),
        optimizers_config: Some(OptimizersConfigDiff {
            indexing_threshold: Some(scanned_kib),
            ..OptimizersConfigDiff::default()
        }),
        quantization_config: quantization(options.quantization),
        // The limits of strict mode, which a server may set for new collections, would refuse filters by any key.
        strict_mode_config: Some(StrictModeConfig { enabled: Some(false), ..StrictModeConfig::default() }),
        metadata: metadata::encode(spec, names),
        ..CreateCollection::default()
    }
}

fn scanned_kib(dense: &DenseSpec) -> u64 {
    let bytes = (dense.dims as u64).saturating_mul(4 * MIN_SCANNED_VECTORS);
    (bytes / 1024).max(MIN_SCANNED_KIB)
}

/// `on_disk` is deprecated in favour of a field that the oldest supported servers do not know.
#[expect(deprecated, reason = "see above")]
fn dense_params(dense: &DenseSpec, options: &QdrantOptions) -> VectorParams {
    VectorParams {
        size: dense.dims as u64,
        distance: Distance::Cosine.into(),
        on_disk: Some(options.on_disk),
        ..VectorParams::default()
    }
}

#[expect(deprecated, reason = "as in dense_params")]
fn quantization(quantization: Quantization) -> Option<QuantizationConfig> {
    let quantization = match quantization {
        Quantization::None => return None,
        Quantization::ScalarInt8 => quantization_config::Quantization::Scalar(ScalarQuantization {
            r#type: QuantizationType::Int8.into(),
            always_ram: Some(true),
            ..ScalarQuantization::default()
        }),
        Quantization::Binary => quantization_config::Quantization::Binary(BinaryQuantization {
            always_ram: Some(true),
            ..BinaryQuantization::default()
        }),
    };
    Some(QuantizationConfig { quantization: Some(quantization) })
}
