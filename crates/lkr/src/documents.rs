//! Reading live documents.

use bytes::Bytes;
use futures_util::Stream;
use lkr_catalog::{ListFilter, NodeRecord, Page, StoredOriginal};
use lkr_domain::{Chunk, DocId, Document, Layer, Node, Scope};

use crate::{
    KnowledgeBase, Result,
    error::{During, check_limit},
};

/// A live document with its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWithNodes {
    /// The record.
    pub document: Document,
    /// Its sections in order.
    pub l2: Vec<NodeRecord<Node>>,
    /// Its subsections and passages in order.
    pub l3: Vec<NodeRecord<Node>>,
}

/// A page of a document's chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPage {
    /// The chunks in order.
    pub items: Vec<NodeRecord<Chunk>>,
    /// The first ordinal of the next page; `None` on the last page.
    pub next: Option<u32>,
}

/// How often a read of several stores is attempted if the document changes during it.
const MAX_READ_ATTEMPTS: usize = 3;

impl KnowledgeBase {
    /// Lists the documents in the scope, newest first, starting after `after`.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &ListFilter,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        check_limit(limit, "list documents")?;
        self.shared.catalog.list(scope, filter, after, limit).await.during("list documents")
    }

    /// The number of documents in the scope that the filter shows and that are counted.
    pub async fn count_documents(
        &self,
        scope: &Scope,
        filter: &ListFilter,
        is_counted: impl Fn(&Document) -> bool + Send + Sync,
    ) -> Result<u64> {
        self.shared.catalog.count(scope, filter, is_counted).await.during("count documents")
    }

    /// A live document.
    pub async fn document(&self, doc_id: DocId) -> Result<Option<Document>> {
        let document = self.shared.catalog.document(doc_id).await.during("read document")?;
        Ok(document.map(|document| document.value))
    }

    /// A live document with its nodes.
    pub async fn detail(&self, doc_id: DocId) -> Result<Option<DocumentWithNodes>> {
        self.detail_in(&Scope::All, doc_id).await
    }

    /// A live document of the scope with its nodes.
    pub async fn detail_in(&self, scope: &Scope, doc_id: DocId) -> Result<Option<DocumentWithNodes>> {
        self.read_consistent(scope, doc_id, "read document", |document: Document| async move {
            let vectors = &*self.shared.vectors;
            let l2 = lkr_catalog::nodes(vectors, &document, Layer::L2).await?;
            let l3 = lkr_catalog::nodes(vectors, &document, Layer::L3).await?;
            Ok(DocumentWithNodes { document, l2, l3 })
        })
        .await
    }

    /// Up to `limit` chunks of a live document, starting at ordinal `from`.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn chunks(&self, doc_id: DocId, from: u32, limit: u32) -> Result<Option<ChunkPage>> {
        self.chunks_in(&Scope::All, doc_id, from, limit).await
    }

    /// Up to `limit` chunks of a live document of the scope, starting at ordinal `from`.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn chunks_in(
        &self,
        scope: &Scope,
        doc_id: DocId,
        from: u32,
        limit: u32,
    ) -> Result<Option<ChunkPage>> {
        check_limit(limit as usize, "read chunks")?;
        self.read_consistent(scope, doc_id, "read chunks", |document: Document| async move {
            let items = lkr_catalog::chunks(&*self.shared.vectors, &document, from, limit).await?;
            let next = from.saturating_add(limit);
            Ok(ChunkPage { items, next: (u64::from(next) < document.counts.chunks).then_some(next) })
        })
        .await
    }

    /// The extracted text of a live document. If it is damaged, the error names the document.
    pub async fn text(&self, doc_id: DocId) -> Result<Option<String>> {
        self.read_consistent(&Scope::All, doc_id, "read text", |document: Document| async move {
            self.shared.texts.get(document.doc_id, document.revision, Some(&document.content_sha256)).await
        })
        .await
    }

    /// The extracted text of a live document of the scope as a stream of UTF-8 bytes. A chunk of the stream may end inside
    /// a character. If the text is damaged, the last item is an error.
    pub async fn text_stream(
        &self,
        scope: &Scope,
        doc_id: DocId,
    ) -> Result<Option<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>>> {
        Ok(self.document_and_text(scope, doc_id).await?.map(|(_, text)| text))
    }

    /// A live document of the scope with its extracted text, both of one revision. The text is a stream as that of
    /// [`text_stream`](Self::text_stream).
    pub async fn document_and_text(
        &self,
        scope: &Scope,
        doc_id: DocId,
    ) -> Result<Option<(Document, impl Stream<Item = std::io::Result<Bytes>> + Send + use<>)>> {
        self.read_consistent(scope, doc_id, "read text", |document: Document| async move {
            let (doc_id, revision) = (document.doc_id, document.revision);
            let text = self.shared.texts.parts(doc_id, revision, Some(&document.content_sha256)).await?;
            Ok((document, text))
        })
        .await
    }

    /// The original of a live document; `None` if it was not added as a file, or the file no longer exists.
    pub async fn original(&self, document: &Document) -> Result<Option<StoredOriginal>> {
        let Some(original) = &document.original else { return Ok(None) };
        self.shared.originals.get(&original.path).await.during("read file")
    }

    /// Reads data of a live document of the scope from outside its record. If the read fails because the document changed during it,
    /// the read is repeated; if the document was deleted, the result is `None`.
    async fn read_consistent<T, F: Future<Output = lkr_catalog::Result<T>> + Send>(
        &self,
        scope: &Scope,
        doc_id: DocId,
        operation: &'static str,
        read: impl Fn(Document) -> F + Send + Sync,
    ) -> Result<Option<T>> {
        let mut attempts = MAX_READ_ATTEMPTS;
        loop {
            let Some(document) = self.document_in(scope, doc_id).await? else { return Ok(None) };
            let revision = document.revision;
            let error = match read(document).await {
                Ok(read) => return Ok(Some(read)),
                Err(error) => error,
            };
            let current = self.document(doc_id).await?;
            attempts -= 1;
            if current.is_some_and(|current| current.revision == revision) || attempts == 0 {
                return Err(error).during(operation);
            }
        }
    }
}
