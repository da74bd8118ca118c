//! Gives one document the vectors of a model, in collections of that model.

use std::ops::Range;

use lkr_catalog::{L1Content, Stored, chunk_of, l1_id, l1_of};
use lkr_domain::{DocId, Document, IndexedTitle, Layer, PointId, stem_and_suffix};
use lkr_models::Embedder;
use lkr_vectors::{Collection, Include, Point};

use crate::{
    Error, ErrorKind, Ports, Result,
    collection_set::CollectionSet,
    passage_vectors::{NodeMeans, batches, embed, passage},
    pending_changes::{PendingChange, PendingChanges},
};

/// Writes the points of live documents into the collections of a model.
pub(crate) struct VectorFiller<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) changes: &'a PendingChanges,
    /// What the points are written to.
    pub(crate) target: &'a CollectionSet,
    /// The number of points that are written at a time.
    pub(crate) batch: usize,
    /// Whether the collections that the points are read from will be dropped: then none may be left out.
    pub(crate) moves: bool,
}

impl VectorFiller<'_> {
    /// Writes a document's points with vectors of `embedder`, unless they exist. Returns the number of embedded texts. If
    /// the document was deleted or replaced meanwhile, the janitor removes what was written.
    ///
    /// # Errors
    /// `Unreadable` if points of the document are missing and the filler [`moves`](Self::moves) them.
    pub(crate) async fn fill(&self, embedder: &dyn Embedder, doc_id: DocId) -> Result<u64> {
        let Some(live) = self.ports.catalog.document(doc_id).await? else { return Ok(0) };
        if own_vector(self.ports, &self.target.l1, &live.value).await?.is_some() {
            return Ok(0);
        }
        let Some((pending, stored)) = self.begin(doc_id).await? else { return Ok(0) };
        let written = self.write_document(embedder, &stored.value).await;
        self.end(pending, &stored, written).await
    }

    /// Writes a document's points without dense vectors, so that its words find it.
    pub(crate) async fn fill_sparse(&self, doc_id: DocId) -> Result<()> {
        let Some((pending, stored)) = self.begin(doc_id).await? else { return Ok(()) };
        let written = self.write_sparse(&stored.value).await;
        self.end(pending, &stored, written).await
    }

    async fn write_sparse(&self, document: &Document) -> Result<()> {
        for layer in [Layer::Chunks, Layer::L3, Layer::L2, Layer::L1] {
            self.write_points(document, layer, |_| None).await?;
        }
        Ok(())
    }

    /// L1 is written last: if it exists, all points exist.
    async fn write_document(&self, embedder: &dyn Embedder, document: &Document) -> Result<u64> {
        let (mut means, embedded) = self.embed_chunks(embedder, document).await?;
        let l1_vector = means.take(&l1_id(document.doc_id, document.revision));
        for layer in [Layer::L3, Layer::L2] {
            self.write_points(document, layer, |point| means.take(point)).await?;
        }
        self.write_points(document, Layer::L1, |_| l1_vector.clone()).await?;
        Ok(embedded)
    }

    /// Embeds the chunks in batches, except batches that an earlier attempt embedded. Returns the vectors of the nodes above
    /// them and the number of embedded texts.
    async fn embed_chunks(&self, embedder: &dyn Embedder, document: &Document) -> Result<(NodeMeans, u64)> {
        let total = count(document, Layer::Chunks);
        let (mut means, mut embedded) = (NodeMeans::default(), 0);
        let title = self.indexed_title(document).await?;
        for range in batches(total, self.batch) {
            // Only a document of several batches can have an earlier one.
            if total as usize > self.batch
                && let Some(vectors) = self.embedded_batch(document, range.clone()).await?
            {
                vectors.iter().for_each(|(point, vector)| means.add(&point.origin, vector));
                continue;
            }
            let stored = self.source_points(document, Layer::Chunks, range).await?;
            let texts = stored
                .iter()
                .map(|point| Ok(passage(&title, &chunk_of(point.payload.clone())?)))
                .collect::<Result<Vec<_>>>()?;
            let (vectors, new) = embed(embedder, texts.iter().map(String::as_str)).await?;
            embedded += new;
            for (point, vector) in stored.iter().zip(&vectors) {
                means.add(&point.origin, vector);
            }
            let filled =
                stored.into_iter().zip(vectors).map(|(point, dense)| Point { dense: Some(dense), ..point });
            self.ports.vectors.upsert(&self.target.chunks, filled.collect()).await?;
        }
        Ok((means, embedded))
    }

    /// The title that the chunks were indexed with, or the record's if one was given since. A file that was renamed has
    /// another name and still no title of its own.
    async fn indexed_title(&self, document: &Document) -> Result<IndexedTitle> {
        let l1 = self.source_points(document, Layer::L1, 0..1).await?.into_iter().next();
        let content = l1.and_then(|point| l1_of(point.payload).ok());
        let is_renamed = |content: &L1Content| {
            content.indexed_title.text != content.title
                && stem_and_suffix(&document.source).0 == document.title
        };
        let kept = content.filter(|content| content.title == document.title || is_renamed(content));
        Ok(kept.map_or_else(|| document.title.as_str().into(), |content| content.indexed_title))
    }

    /// The chunks of a batch with their vectors, if all of them have one in the collection.
    async fn embedded_batch(
        &self,
        document: &Document,
        range: Range<u32>,
    ) -> Result<Option<Vec<(Point, Vec<f32>)>>> {
        let stored = points(self.ports, &self.target.chunks, document, Layer::Chunks, range).await?;
        let with_vector = |point: Option<Point>| {
            let mut point = point?;
            let vector = point.dense.take()?;
            Some((point, vector))
        };
        Ok(stored.into_iter().map(with_vector).collect())
    }

    /// Copies the points of a layer in batches, each with its dense vector from `vector`.
    async fn write_points(
        &self,
        document: &Document,
        layer: Layer,
        mut vector: impl FnMut(&PointId) -> Option<Vec<f32>> + Send,
    ) -> Result<()> {
        for range in batches(count(document, layer), self.batch) {
            let stored = self.source_points(document, layer, range).await?;
            let filled = stored.into_iter().map(|point| {
                let dense = vector(&point.id);
                Point { dense, ..point }
            });
            self.ports.vectors.upsert(self.target.of(layer), filled.collect()).await?;
        }
        Ok(())
    }

    /// The points of a document in the live collections.
    async fn source_points(
        &self,
        document: &Document,
        layer: Layer,
        ordinals: Range<u32>,
    ) -> Result<Vec<Point>> {
        let expected = ordinals.len();
        let stored = points(self.ports, &layer.into(), document, layer, ordinals).await?;
        let stored: Vec<Point> = stored.into_iter().flatten().collect();
        if self.moves && stored.len() < expected {
            let missing = expected - stored.len();
            let reason = format!("document {} lacks {missing} points of {layer}", document.doc_id);
            return Err(Error::new(ErrorKind::Unreadable, "copy points", reason));
        }
        Ok(stored)
    }

    /// Notes that points of a document will be written, then reads the document; `None` if it is not live. If it ceases to be
    /// from now on, its revision stays garbage at least until the note is gone.
    async fn begin(&self, doc_id: DocId) -> Result<Option<(PendingChange<'_>, Stored<Document>)>> {
        let pending = self.changes.begin(doc_id).await?;
        let Some(stored) = self.ports.catalog.document(doc_id).await? else {
            pending.revert().await?;
            return Ok(None);
        };
        Ok(Some((pending, stored)))
    }

    /// Ends what [`begin`](Self::begin) began. If the document was deleted or replaced meanwhile, missing points are no failure,
    /// and the note is left to the janitor, which then collects what was written, unless collection is paused.
    async fn end<T: Default>(
        &self,
        pending: PendingChange<'_>,
        stored: &Stored<Document>,
        written: Result<T>,
    ) -> Result<T> {
        let live = self.ports.catalog.document(stored.value.doc_id).await?;
        let is_live = live.is_some_and(|live| live.value.revision == stored.value.revision);
        match written {
            Ok(done) if is_live => {
                pending.confirm(stored).await?;
                Ok(done)
            }
            Err(error) if !is_live && error.kind() == ErrorKind::Unreadable => Ok(T::default()),
            written => written,
        }
    }
}

/// The documents whose points lack vectors in a collection of L1.
pub(crate) async fn without_vectors(
    ports: &Ports,
    l1: &Collection,
    documents: &[Document],
) -> Result<Vec<DocId>> {
    let ids: Vec<PointId> =
        documents.iter().map(|document| l1_id(document.doc_id, document.revision)).collect();
    let stored = ports.vectors.get(l1, &ids, Include::All).await?;
    let has_vector = |stored: &Option<Point>| stored.as_ref().is_some_and(|point| point.dense.is_some());
    let lacking = documents.iter().zip(stored).filter(|(_, stored)| !has_vector(stored));
    Ok(lacking.map(|(document, _)| document.doc_id).collect())
}

/// The document's own vector in a collection of L1, if it has one.
pub(crate) async fn own_vector(
    ports: &Ports,
    l1: &Collection,
    document: &Document,
) -> Result<Option<Vec<f32>>> {
    let point = points(ports, l1, document, Layer::L1, 0..1).await?.into_iter().flatten().next();
    Ok(point.and_then(|point| point.dense))
}

async fn points(
    ports: &Ports,
    collection: &Collection,
    document: &Document,
    layer: Layer,
    ordinals: Range<u32>,
) -> Result<Vec<Option<Point>>> {
    let id = |ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
    let ids: Vec<PointId> = ordinals.map(id).collect();
    match ports.vectors.get(collection, &ids, Include::All).await {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::StoreUnavailable, "read points", error))
        }
        stored => Ok(stored?),
    }
}

fn count(document: &Document, layer: Layer) -> u32 {
    u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX)
}
