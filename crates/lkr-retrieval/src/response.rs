use lkr_domain::{DocId, Layer, PointId, SpaceName};
use time::OffsetDateTime;

/// The response to a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchResponse {
    /// The query, without surrounding white space.
    pub query: String,
    /// The results, best first, ties by chunk id.
    pub results: Vec<SearchResult>,
    /// The upper-layer hits that contain results.
    pub layers: Layers,
    /// The summary, if the request wants one.
    pub summary: Option<Summary>,
    /// Warnings, such as a model that failed.
    pub warnings: Vec<String>,
    /// The duration of the search in milliseconds.
    pub took_ms: u64,
    /// Legs, ranks and scores, if the request wants them.
    pub explain: Option<Explain>,
}

/// A result: a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The chunk.
    pub chunk_id: PointId,
    /// Its document.
    pub doc_id: DocId,
    /// The document's revision that it is a part of.
    pub revision: u64,
    /// When the document was last changed, by an edit of its properties too.
    pub updated_at: OffsetDateTime,
    /// The document's title.
    pub title: String,
    /// The document's source.
    pub source: String,
    /// The document's space.
    pub space: SpaceName,
    /// The document's category; empty for none.
    pub category: String,
    /// The headings above the chunk, without the title, outermost first.
    pub path: Vec<String>,
    /// The page it begins on, counted from 1, if the source has pages.
    pub page_start: Option<u32>,
    /// The page it ends on.
    pub page_end: Option<u32>,
    /// The offset of its first code point in the document's extracted text.
    pub char_start: u32,
    /// The offset after its last code point.
    pub char_end: u32,
    /// The extracted text between these offsets.
    pub text: String,
    /// Ranges of `text`, in code points, that match the query; sorted, without overlap.
    pub highlights: Vec<(u32, u32)>,
    /// The fused score, or the reranker's score, raised where necessary above the scores of the results that follow:
    /// literal matches come first. Scores of different queries or kinds of fusion are not comparable.
    pub score: f32,
    /// The parts of the fused score.
    pub scores: Scores,
}

/// The parts of a result's score. `None` for layers and legs that did not list it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scores {
    /// The fused score of its document in L1.
    pub l1: Option<f32>,
    /// The fused score of its L2 node.
    pub l2: Option<f32>,
    /// The fused score of its L3 node.
    pub l3: Option<f32>,
    /// The cosine of the chunk's vector and the query's.
    pub dense: Option<f32>,
    /// The chunk's BM25 score.
    pub sparse: Option<f32>,
}

/// The upper-layer hits that contain results, best first, at most as many as results. Empty in a flat search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layers {
    /// Documents.
    pub l1: Vec<LayerHit>,
    /// Sections.
    pub l2: Vec<LayerHit>,
    /// Subsections and passages.
    pub l3: Vec<LayerHit>,
}

/// A hit of an upper layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerHit {
    /// Its point.
    pub id: PointId,
    /// Its document.
    pub doc_id: DocId,
    /// Its title.
    pub title: String,
    /// Its summary.
    pub summary: String,
    /// Its fused score within its layer.
    pub score: f32,
}

/// A summary of the results.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The text, with markers such as `[1]` after the sentences that they support. Empty without results.
    pub text: String,
    /// The chunk behind each marker, in the order of the markers.
    pub citations: Vec<Citation>,
    /// The language model that wrote it; `None` if it is extractive.
    pub model: Option<String>,
    /// How it was made.
    pub kind: SummaryKind,
}

/// The chunk that a marker of a summary cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The marker in the text, such as `[1]`.
    pub marker: String,
    /// The chunk.
    pub chunk_id: PointId,
    /// Its document.
    pub doc_id: DocId,
}

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// Written by a language model.
    Generated,
    /// Made of sentences of the results.
    Extractive,
}

/// How the results were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explain {
    /// All legs of the mode, from L1 down, including legs without a vote.
    pub legs: Vec<LegReport>,
    /// The reranker's report, if it scored candidates.
    pub rerank: Option<RerankReport>,
    /// The ranks and scores of each result, in the order of the results.
    pub results: Vec<ExplainedResult>,
}

/// A report of reranking.
#[derive(Debug, Clone, PartialEq)]
pub struct RerankReport {
    /// The reranker's name.
    pub model: String,
    /// The number of candidates that it scored.
    pub candidates: usize,
    /// Its duration in milliseconds.
    pub ms: f64,
}

/// A report of one leg.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LegReport {
    /// The layer that it searched.
    pub layer: Layer,
    /// Whether it searched dense or sparse vectors.
    pub kind: LegKind,
    /// Its weight in a chunk's score; 0 for a leg without a vote.
    pub weight: f32,
    /// The number of live points that it listed.
    pub candidates: usize,
    /// Its duration in milliseconds. The legs of a batch run together, so each reports the duration of the batch; 0 for
    /// a leg that was not queried.
    pub ms: f64,
}

/// The kind of vectors that a leg searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LegKind {
    /// Dense vectors: by meaning.
    Dense,
    /// Sparse vectors: by keyword.
    Sparse,
}

/// The ranks and scores of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplainedResult {
    /// The chunk.
    pub chunk_id: PointId,
    /// Its ranks in the legs.
    pub ranks: Ranks,
    /// Its scores in the legs: cosines and BM25 scores.
    pub scores: LegScores,
    /// Its fused score.
    pub fused: f32,
    /// The share of the query in its heading, from 0 to 1; 0 if headings do not count.
    pub heading: f32,
    /// Whether it comes first because it contains the literals of the query.
    pub exact: bool,
    /// The reranker's score, if the reranker scored it.
    pub reranked: Option<f32>,
}

/// The ranks of a chunk and of the nodes that contain it, counted from 1.
pub type Ranks = PerLeg<u32>;

/// The scores of a chunk and of the nodes that contain it.
pub type LegScores = PerLeg<f32>;

/// A value for each leg, of a chunk or of the node that contains it; `None` if the leg did not list it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerLeg<T> {
    /// The dense leg of L1.
    pub l1_dense: Option<T>,
    /// The sparse leg of L1.
    pub l1_sparse: Option<T>,
    /// The dense leg of L2.
    pub l2_dense: Option<T>,
    /// The sparse leg of L2.
    pub l2_sparse: Option<T>,
    /// The dense leg of L3.
    pub l3_dense: Option<T>,
    /// The sparse leg of L3.
    pub l3_sparse: Option<T>,
    /// The dense leg of the chunks.
    pub chunks_dense: Option<T>,
    /// The sparse leg of the chunks.
    pub chunks_sparse: Option<T>,
}

impl<T: Copy> PerLeg<T> {
    /// The value of one leg.
    pub(crate) const fn leg_mut(&mut self, layer: Layer, kind: LegKind) -> &mut Option<T> {
        match (layer, kind) {
            (Layer::L1, LegKind::Dense) => &mut self.l1_dense,
            (Layer::L1, LegKind::Sparse) => &mut self.l1_sparse,
            (Layer::L2, LegKind::Dense) => &mut self.l2_dense,
            (Layer::L2, LegKind::Sparse) => &mut self.l2_sparse,
            (Layer::L3, LegKind::Dense) => &mut self.l3_dense,
            (Layer::L3, LegKind::Sparse) => &mut self.l3_sparse,
            (Layer::Chunks, LegKind::Dense) => &mut self.chunks_dense,
            (Layer::Chunks, LegKind::Sparse) => &mut self.chunks_sparse,
        }
    }

    /// All eight values with their names (`l1_dense`, …), from L1 down.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Option<T>); 8] {
        [
            ("l1_dense", self.l1_dense),
            ("l1_sparse", self.l1_sparse),
            ("l2_dense", self.l2_dense),
            ("l2_sparse", self.l2_sparse),
            ("l3_dense", self.l3_dense),
            ("l3_sparse", self.l3_sparse),
            ("chunks_dense", self.chunks_dense),
            ("chunks_sparse", self.chunks_sparse),
        ]
    }
}

impl LegKind {
    /// Its name in responses, metrics and logs: `dense` or `sparse`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        }
    }
}
