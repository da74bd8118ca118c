//! Finding: rounds of asking, checking against the records and ranking, until one round holds together.

use std::collections::{HashMap, HashSet};

use lkr_catalog::Catalog;
use lkr_domain::{Chunk, DocId, Layer, PointId};
use lkr_vectors::{Collection, ErrorKind, Filter, Include, Point, VectorStore};

use crate::{
    GroupBy, LegKind, Mode, Result, SearchOptions, SearchRequest,
    encoded_query::{Dense, EncodedQuery},
    legs::{self, Legs, Question, Reach},
    live::{self, Documents, Live},
    look::{LITERAL_DEPTH, Look, Reranked, Seen},
    order::{self, page, shortlist},
    rank::{self, Candidate, Ranked, Rule},
    second,
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
    voice: &EncodedQuery,
    look: &Look,
    options: &SearchOptions,
) -> Result<Found> {
    let mut reach = Reach { limit: options.candidates.max(2 * request.top_k), dead: Vec::new() };
    let filter = request.filters.to_filter();
    let mut round = Round { stores, request, voice, look, options, filter, last: false };
    let mut count = 1;
    loop {
        round.last = count >= MAX_ROUNDS;
        if let Some(found) = round.run(&mut reach).await? {
            return Ok(found);
        }
        count += 1;
    }
}

/// One round. What it answers is `None` where it does not hold together and another may; the last one answers what it
/// has.
#[derive(Debug)]
struct Round<'a> {
    stores: Stores<'a>,
    request: &'a SearchRequest,
    voice: &'a EncodedQuery,
    look: &'a Look,
    options: &'a SearchOptions,
    filter: Filter,
    last: bool,
}

/// What the legs of a round listed, cut to what is live, and its order.
#[derive(Debug)]
struct Listed {
    legs: Legs,
    live: Live,
    ranked: Ranked,
}

impl Round<'_> {
    async fn run(&self, reach: &mut Reach) -> Result<Option<Found>> {
        let generation = self.stores.catalog.generation().await?;
        let Some(mut listed) = self.list(reach).await? else { return Ok(None) };
        if !self.list_more(reach, &mut listed).await? {
            return Ok(None);
        }
        // A document replaced between the hits and the records would show neither its old points nor its new ones.
        let torn = listed.live.replaced && self.stores.catalog.generation().await? != generation;
        let short = extend(reach, self.request, &listed);
        if (torn || short) && !self.last {
            return Ok(None);
        }
        let found = self.look_at(listed).await?;
        let settled = found.settled && !torn && !short;
        Ok(Some(Found { settled, ..found }).filter(|found| self.last || found.settled))
    }

    /// Asks the legs, and ranks what they list.
    async fn list(&self, reach: &mut Reach) -> Result<Option<Listed>> {
        let Stores { vectors, catalog } = self.stores;
        let question = Question { mode: self.request.mode, voice: self.voice, reach };
        let asked = legs::ask(vectors, &self.filter, [question]).await;
        let Some([mut legs]) = self.unless_switched(asked)? else { return Ok(None) };
        let live = live::keep_live(catalog, &mut legs).await?;
        // What an earlier round passed over may have been published since: its document would be shown in no revision.
        if !reach.dead.is_empty() && !live::keep_dead(catalog, &mut reach.dead).await? && !self.last {
            return Ok(None);
        }
        let ranked = rank::rank(&legs, self.rule());
        Ok(Some(Listed { legs, live, ranked }))
    }

    /// Asks the chunks a second time, in one batch, where there is something to ask: by meaning, with the query moved
    /// towards what the first time showed, where that is wanted; and beside a document that fills the page. False where
    /// the collections were switched.
    async fn list_more(&self, reach: &Reach, listed: &mut Listed) -> Result<bool> {
        let Stores { vectors, catalog } = self.stores;
        let moved = self.moved(listed).await;
        let Some(moved) = self.unless_switched(moved)? else { return Ok(false) };
        let filling = filling(self.request, &listed.legs, &listed.ranked);
        if moved.is_none() && filling.is_none() {
            return Ok(true);
        }
        let again = EncodedQuery { dense: moved.clone(), ..EncodedQuery::default() };
        let besides = match &filling {
            Some(_) => {
                EncodedQuery { dense: moved.or_else(|| self.voice.dense.clone()), ..self.voice.clone() }
            }
            None => EncodedQuery::default(),
        };
        let dead = reach.dead.iter().copied().chain(filling).collect();
        let beside = Reach { limit: self.request.top_k, dead };
        let again = Question { mode: Mode::Flat, voice: &again, reach };
        let besides = Question { voice: &besides, reach: &beside, ..again };
        let more = legs::ask(vectors, &self.filter, [again, besides]).await;
        let Some(mut more) = self.unless_switched(more)? else { return Ok(false) };
        for legs in &mut more {
            listed.live.join(live::keep_live(catalog, legs).await?);
        }
        let [again, besides] = more;
        listed.legs.take_over(again);
        listed.legs.join(besides);
        listed.ranked = rank::rank(&listed.legs, self.rule());
        Ok(true)
    }

    /// The query's vector moved towards what was found; `None` where that is not wanted, there is nothing to move, or
    /// nowhere to move it to.
    async fn moved(&self, Listed { legs, ranked, .. }: &Listed) -> lkr_vectors::Result<Option<Dense>> {
        let Some(dense) = &self.voice.dense else { return Ok(None) };
        if !self.options.second_round || self.request.mode == Mode::Flat {
            return Ok(None);
        }
        second::moved(self.stores.vectors, legs, ranked, dense).await
    }

    /// Reads the best candidates, puts them in their final order, and what makes the page with all that is shown of it.
    /// Settled where nothing of it went meanwhile.
    async fn look_at(&self, listed: Listed) -> Result<Found> {
        let Listed { legs, live, mut ranked } = listed;
        let (vectors, look, request) = (self.stores.vectors, self.look, self.request);
        let paging = (request.group_by, request.top_k);
        let literal = literal_candidates(look, &legs);
        let mut candidates = shortlist(&ranked.candidates, paging, look.depth(), &literal);
        let wanted = candidates.len();
        let Seen { chunks, counts_above, reranked } =
            look.at(vectors, &request.query, &mut candidates, &live.documents).await?;
        ranked.count_above(counts_above);
        ranked.candidates = page(&candidates, request.group_by, request.top_k);
        let shown = fetch(vectors, &ranked, chunks).await?;
        let settled = candidates.len() == wanted && shown.is_whole();
        Ok(Found { legs, ranked, documents: live.documents, shown, reranked, settled })
    }

    /// What was asked; `None` where the collections were switched after their names were looked up, and there is another
    /// round.
    fn unless_switched<T>(&self, asked: lkr_vectors::Result<T>) -> Result<Option<T>> {
        match asked {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.last => Ok(None),
            asked => Ok(Some(asked?)),
        }
    }

    fn rule(&self) -> Rule {
        Rule {
            fusion: self.request.fusion,
            cosine_scale: self.voice.dense.as_ref().map_or(0.0, |dense| dense.cosine_scale),
        }
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

/// Makes the next round reach farther where this one fell short, and answers whether it did.
fn extend(reach: &mut Reach, request: &SearchRequest, listed: &Listed) -> bool {
    let Listed { legs, live, ranked } = listed;
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
    vectors.get(&Collection::from(layer), &ids, Include::Payload).await
}

impl Shown {
    fn is_whole(&self) -> bool {
        [&self.l2, &self.l3].into_iter().flatten().all(Option::is_some)
    }
}
