use lkr_domain::{DocId, Layer, PointId};

/// The answer to a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchResponse {
    /// The query, without white space around it.
    pub query: String,
    /// The results, the best first, ties by chunk id.
    pub results: Vec<SearchResult>,
    /// The hits of the upper layers that led to the results.
    pub layers: Layers,
    /// The summary, where one was asked for.
    pub summary: Option<Summary>,
    /// What the reader should know of how the answer came about.
    pub warnings: Vec<String>,
    /// How long the search took in milliseconds.
    pub took_ms: u64,
    /// Legs and ranks, where they were asked for.
    pub explain: Option<Explain>,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The chunk.
    pub chunk_id: PointId,
    /// Its document.
    pub doc_id: DocId,
    /// The document's title.
    pub title: String,
    /// The document's source.
    pub source: String,
    /// The document's category; empty for none.
    pub category: String,
    /// The headings that lead to the chunk, below the title.
    pub path: Vec<String>,
    /// The page, counted from 1, that it begins on, where the source has pages.
    pub page_start: Option<u32>,
    /// The page that it ends on.
    pub page_end: Option<u32>,
    /// Its first code point in the document's extracted text.
    pub char_start: u32,
    /// The code point after its last.
    pub char_end: u32,
    /// The extracted text cut there.
    pub text: String,
    /// Ranges of `text` in code points that the query's words match, in order, without overlap.
    pub highlights: Vec<(u32, u32)>,
    /// The fused score, or the reranker's, lifted above what comes after it: what holds literally what was asked for
    /// comes first. Scores of two queries, or of two kinds of fusion, do not compare.
    pub score: f32,
    /// What the fused score is made of.
    pub scores: Scores,
}

/// What a result's score is made of. `None` stands for what was not listed.
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
    /// The chunk's keyword score.
    pub sparse: Option<f32>,
}

/// The hits of the upper layers that led to the results, the best first, as many as results at the most. Empty in a
/// flat search.
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
    /// The text, with markers such as `[1]` after what they vouch for. Empty where there is no result.
    pub text: String,
    /// What each marker stands for, in the order of the markers.
    pub citations: Vec<Citation>,
    /// The language model that wrote it; `None` where sentences were picked from the results.
    pub model: Option<String>,
    /// How it was made.
    pub kind: SummaryKind,
}

/// What a marker of a summary stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The marker as it stands in the text, such as `[1]`.
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
    /// Picked from the results, sentence by sentence.
    Extractive,
}

/// How the results came about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explain {
    /// All legs of the mode, from L1 down, those included that had no vote.
    pub legs: Vec<LegReport>,
    /// What the reranker did, where it did anything.
    pub rerank: Option<RerankReport>,
    /// Where the results stood, in the order of the results.
    pub results: Vec<ExplainedResult>,
}

/// What a reranker did.
#[derive(Debug, Clone, PartialEq)]
pub struct RerankReport {
    /// Its name.
    pub model: String,
    /// How many candidates it scored.
    pub candidates: usize,
    /// How long it took in milliseconds.
    pub ms: f64,
}

/// What a leg contributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LegReport {
    /// Where it looked.
    pub layer: Layer,
    /// How it looked.
    pub kind: LegKind,
    /// The factor of its reciprocal ranks in a chunk's score; 0 for a leg without a vote.
    pub weight: f32,
    /// How many live points it listed.
    pub candidates: usize,
    /// How long it took in milliseconds. The legs of a batch run together and each shows the whole batch's time; 0
    /// for a leg that was not asked.
    pub ms: f64,
}

/// How a leg looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LegKind {
    /// By meaning.
    Dense,
    /// By keyword.
    Sparse,
}

/// Where a result stood, and why it stands where it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplainedResult {
    /// The chunk.
    pub chunk_id: PointId,
    /// Its ranks.
    pub ranks: Ranks,
    /// What each leg scored it: cosines and keyword scores.
    pub scores: LegScores,
    /// Its score when the legs were fused.
    pub fused: f32,
    /// How far its heading names what was asked for, from 0 to 1; 0 where headings do not count.
    pub heading: f32,
    /// Whether it comes first because it holds what was asked for as it stands.
    pub exact: bool,
    /// The reranker's score, where it was shown to it.
    pub reranked: Option<f32>,
}

/// The ranks of a chunk and of the nodes it lies in, counted from 1.
pub type Ranks = PerLeg<u32>;

/// The scores of a chunk and of the nodes it lies in.
pub type LegScores = PerLeg<f32>;

/// Something of a chunk and of the nodes it lies in by leg; `None` where a leg did not list them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerLeg<T> {
    /// Of its document, by meaning.
    pub l1_dense: Option<T>,
    /// Of its document, by keyword.
    pub l1_sparse: Option<T>,
    /// Of its L2 node, by meaning.
    pub l2_dense: Option<T>,
    /// Of its L2 node, by keyword.
    pub l2_sparse: Option<T>,
    /// Of its L3 node, by meaning.
    pub l3_dense: Option<T>,
    /// Of its L3 node, by keyword.
    pub l3_sparse: Option<T>,
    /// Its own, by meaning.
    pub chunks_dense: Option<T>,
    /// Its own, by keyword.
    pub chunks_sparse: Option<T>,
}

impl<T: Copy> PerLeg<T> {
    /// One leg's place.
    pub(crate) const fn of(&mut self, layer: Layer, kind: LegKind) -> &mut Option<T> {
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

    /// All eight by their names (`l1_dense`, …), from L1 down.
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
    /// Its name in answers: `dense`, `sparse`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        }
    }
}
