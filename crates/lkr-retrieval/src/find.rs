//! Finding: rounds of asking, checking against the records and ranking, until one round holds together.

use std::collections::{HashMap, HashSet};

use lkr_catalog::Catalog;
use lkr_domain::{Chunk, DocId, Layer, PointId};
use lkr_vectors::{Collection, ErrorKind, Filter, Point, VectorStore, With};

use crate::{
    GroupBy, LegKind, Mode, Result, SearchOptions, SearchRequest,
    legs::{self, Legs, Reach},
    live::{self, Documents, Live},
    look::{LITERAL_DEPTH, Look, Reranked, Seen},
    order::{self, page, shortlist},
    rank::{self, Candidate, Ranked, Rule},
    second,
    voice::Voice,
};

/// How often a search begins anew at the most: because documents changed under it, or its candidates did not reach.
const MAX_ROUNDS: usize = 6;
/// How many candidates a leg lists at the most, where results are documents and many chunks belong to one.
const MAX_CANDIDATES: usize = 6_400;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// What the legs listed of live documents.
    pub(crate) legs: Legs,
    /// The chunks in their final order.
    pub(crate) ranked: Ranked,
    /// The records of the documents that were hit.
    pub(crate) documents: Documents,
    /// What is shown of them.
    pub(crate) shown: Shown,
    /// What the reranker did.
    pub(crate) reranked: Reranked,
    /// Whether it shows one state of the knowledge base, and all that there is of it.
    pub(crate) settled: bool,
}

/// What is shown: chunks, and points as they are stored, `None` for those that went meanwhile.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Those of the candidates.
    pub(crate) chunks: HashMap<PointId, Chunk>,
    /// In the order of [`Ranked::led_from`] for L2.
    pub(crate) l2: Vec<Option<Point>>,
    /// In the order of [`Ranked::led_from`] for L3.
    pub(crate) l3: Vec<Option<Point>>,
}

/// Where to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stores<'a> {
    pub(crate) vectors: &'a dyn VectorStore,
    pub(crate) catalog: &'a Catalog,
}

/// Finds what `request` asks for.
pub(crate) async fn find(
    stores: Stores<'_>,
    request: &SearchRequest,
    voice: &Voice,
    look: &Look,
    options: &SearchOptions,
) -> Result<Found> {
    let mut reach = Reach { limit: options.candidates.max(2 * request.top_k), dead: Vec::new() };
    let mut round = 1;
    loop {
        let last = round == MAX_ROUNDS;
        if let Some(found) = attempt(stores, request, voice, look, options, &mut reach, last).await? {
            return Ok(found);
        }
        round += 1;
    }
}

/// One round. `None` where it does not hold together and another may; the last one answers what it has.
async fn attempt(
    stores: Stores<'_>,
    request: &SearchRequest,
    voice: &Voice,
    look: &Look,
    options: &SearchOptions,
    reach: &mut Reach,
    last: bool,
) -> Result<Option<Found>> {
    let Stores { vectors, catalog } = stores;
    let generation = catalog.generation().await?;
    let filter = request.filters.to_filter();
    let asked = legs::ask(vectors, request.mode, voice, &filter, reach).await;
    let Some(mut legs) = unless_switched(asked, last)? else { return Ok(None) };
    let mut live = live::keep_live(catalog, &mut legs).await?;
    // What an earlier round passed over may have been published since: its document would be shown in no revision.
    if !reach.dead.is_empty() && !live::keep_dead(catalog, &mut reach.dead).await? && !last {
        return Ok(None);
    }
    if options.second_round && request.mode == Mode::Layered {
        let second = again(vectors, request, voice, &filter, reach, &legs).await;
        let Some(second) = unless_switched(second, last)? else { return Ok(None) };
        if let Some(second) = second {
            legs.take_over(second);
            live = live::keep_live(catalog, &mut legs).await?.after(live);
        }
    }
    let mut ranked = rank::rank(&legs, rule(request, voice));
    if let Some(document) = filling(request, &legs, &ranked) {
        let beside =
            Reach { limit: request.top_k, dead: reach.dead.iter().copied().chain([document]).collect() };
        let others = legs::ask(vectors, Mode::Flat, voice, &filter, &beside).await;
        let Some(mut others) = unless_switched(others, last)? else { return Ok(None) };
        live.join(live::keep_live(catalog, &mut others).await?);
        legs.join(others);
        ranked = rank::rank(&legs, rule(request, voice));
    }
    // A document replaced between the hits and the records would show neither its old points nor its new ones.
    let torn = live.replaced && catalog.generation().await? != generation;
    let short = extend(reach, request, &legs, &live, &ranked);
    if (torn || short) && !last {
        return Ok(None);
    }
    let paging = (request.group_by, request.top_k);
    let mut candidates =
        shortlist(&ranked.candidates, paging, look.depth(), &literal_candidates(look, &legs));
    let listed = candidates.len();
    let Seen { chunks, counts_above, reranked } =
        look.at(vectors, &request.query, &mut candidates, &live.documents).await?;
    ranked.count_above(counts_above);
    let all_there = candidates.len() == listed;
    ranked.candidates = page(&candidates, request.group_by, request.top_k);
    let shown = fetch(vectors, &ranked, chunks).await?;
    let whole = all_there && shown.is_whole();
    if !whole && !last {
        return Ok(None);
    }
    let settled = whole && !torn && !short;
    Ok(Some(Found { legs, ranked, documents: live.documents, shown, reranked, settled }))
}

/// What was asked; `None` where the collections were switched after their names were looked up, and there is another
/// round.
fn unless_switched<T>(asked: lkr_vectors::Result<T>, last: bool) -> Result<Option<T>> {
    match asked {
        Err(error) if error.kind() == ErrorKind::NotFound && !last => Ok(None),
        asked => Ok(Some(asked?)),
    }
}

/// The document that fills the page where the legs reach no farther and others may exist.
fn filling(request: &SearchRequest, legs: &Legs, ranked: &Ranked) -> Option<(DocId, u64)> {
    let one_alone = request.filters.doc_ids.as_ref().is_some_and(|ids| ids.len() == 1);
    let more = legs.all.iter().any(|leg| leg.layer == Layer::Chunks && leg.full);
    let chunks = request.group_by == GroupBy::Chunk;
    (chunks && more && !one_alone).then(|| order::filling(&ranked.candidates, request.top_k))?
}

/// Those that the keywords of a literal request lead to, however far down the legs together place them.
fn literal_candidates(look: &Look, legs: &Legs) -> Vec<PointId> {
    let sparse = legs.all.iter().find(|leg| leg.layer == Layer::Chunks && leg.kind == LegKind::Sparse);
    let hits = sparse.filter(|_| !look.literals.is_empty()).into_iter().flat_map(|leg| &leg.hits);
    hits.take(LITERAL_DEPTH).map(|hit| hit.id).collect()
}

/// Asks the dense legs a second time, with the query moved towards what the first round showed. `None` where there is
/// nothing to move, or nowhere to move it to.
async fn again(
    vectors: &dyn VectorStore,
    request: &SearchRequest,
    voice: &Voice,
    filter: &Filter,
    reach: &Reach,
    legs: &Legs,
) -> lkr_vectors::Result<Option<Legs>> {
    let Some(dense) = &voice.dense else { return Ok(None) };
    let ranked = rank::rank(legs, rule(request, voice));
    let Some(moved) = second::moved(vectors, legs, &ranked, dense).await? else { return Ok(None) };
    let voice = Voice { dense: Some(moved), ..Voice::default() };
    Ok(Some(legs::ask(vectors, request.mode, &voice, filter, reach).await?))
}

fn rule(request: &SearchRequest, voice: &Voice) -> Rule {
    Rule {
        fusion: request.fusion,
        cosine_scale: voice.dense.as_ref().map_or(0.0, |dense| dense.cosine_scale),
    }
}

/// Makes the next round reach farther where this one fell short, and answers whether it did.
fn extend(reach: &mut Reach, request: &SearchRequest, legs: &Legs, live: &Live, ranked: &Ranked) -> bool {
    let more = legs.all.iter().any(|leg| leg.layer == Layer::Chunks && leg.full);
    let few = request.group_by == GroupBy::Document && documents_of(&ranked.candidates) < request.top_k;
    // The dead of one large document are passed over at once; those of many small ones keep coming.
    let crowded = live.starved && !reach.dead.is_empty();
    let wider = ((more && few) || crowded) && reach.limit < MAX_CANDIDATES;
    if wider {
        reach.limit = (4 * reach.limit).min(MAX_CANDIDATES);
    }
    if live.starved {
        reach.dead.extend(&live.dead);
    }
    live.starved || wider
}

fn documents_of(candidates: &[Candidate]) -> usize {
    candidates.iter().map(|candidate| candidate.origin.doc_id).collect::<HashSet<_>>().len()
}

async fn fetch(vectors: &dyn VectorStore, ranked: &Ranked, chunks: HashMap<PointId, Chunk>) -> Result<Shown> {
    let (l2, l3) = (ranked.led_from(Layer::L2), ranked.led_from(Layer::L3));
    let (l2, l3) = tokio::try_join!(
        get(vectors, Layer::L2, l2.iter().map(|node| node.id).collect()),
        get(vectors, Layer::L3, l3.iter().map(|node| node.id).collect()),
    )?;
    Ok(Shown { chunks, l2, l3 })
}

/// Points with what is read back of them, in the order of `ids`.
pub(crate) async fn get(
    vectors: &dyn VectorStore,
    layer: Layer,
    ids: Vec<PointId>,
) -> lkr_vectors::Result<Vec<Option<Point>>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    vectors.get(&Collection::from(layer), &ids, With::Payload).await
}

impl Shown {
    fn is_whole(&self) -> bool {
        [&self.l2, &self.l3].into_iter().flatten().all(Option::is_some)
    }
}
