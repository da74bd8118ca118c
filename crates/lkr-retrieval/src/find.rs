//! Finding: rounds of asking, checking against the records and ranking, until one round holds together.

use lkr_catalog::Catalog;
use lkr_domain::{Layer, PointId};
use lkr_vectors::{Collection, ErrorKind, Point, VectorStore, With};

use crate::{
    GroupBy, Result, SearchRequest,
    legs::{self, Legs, Reach},
    live::{self, Documents, Live},
    rank::{self, Ranked, Rule},
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
    /// The points that are shown.
    pub(crate) shown: Shown,
    /// Whether it shows one state of the knowledge base, and all that there is of it.
    pub(crate) settled: bool,
}

/// The points that are shown, as they are stored; `None` for those that went meanwhile.
#[derive(Debug)]
pub(crate) struct Shown {
    /// In the order of the candidates.
    pub(crate) chunks: Vec<Option<Point>>,
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

/// Finds what `request` asks for, beginning with `candidates` a leg.
pub(crate) async fn find(
    stores: Stores<'_>,
    request: &SearchRequest,
    voice: &Voice,
    candidates: usize,
) -> Result<Found> {
    let mut reach = Reach { limit: candidates.max(2 * request.top_k), dead: Vec::new() };
    let mut round = 1;
    loop {
        let last = round == MAX_ROUNDS;
        if let Some(found) = attempt(stores, request, voice, &mut reach, last).await? {
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
    reach: &mut Reach,
    last: bool,
) -> Result<Option<Found>> {
    let Stores { vectors, catalog } = stores;
    let generation = catalog.generation().await?;
    let filter = request.filters.to_filter();
    let mut legs = match legs::ask(vectors, request.mode, voice, &filter, reach).await {
        // The collections were switched after their names were looked up.
        Err(error) if error.kind() == ErrorKind::NotFound && !last => return Ok(None),
        legs => legs?,
    };
    let live = live::keep_live(catalog, &mut legs).await?;
    let ranked = rank::rank(&legs, rule(request, voice));
    // A document replaced between the hits and the records would show neither its old points nor its new ones.
    let torn = live.replaced && catalog.generation().await? != generation;
    let short = extend(reach, request, &legs, &live, &ranked);
    if (torn || short) && !last {
        return Ok(None);
    }
    let shown = fetch(vectors, &ranked).await?;
    let whole = shown.is_whole();
    if !whole && !last {
        return Ok(None);
    }
    let settled = whole && !torn && !short;
    Ok(Some(Found { legs, ranked, documents: live.documents, shown, settled }))
}

fn rule(request: &SearchRequest, voice: &Voice) -> Rule {
    Rule {
        fusion: request.fusion,
        group_by: request.group_by,
        top_k: request.top_k,
        cosine_scale: voice.dense.as_ref().map_or(0.0, |dense| dense.cosine_scale),
    }
}

/// Makes the next round reach farther where this one fell short, and answers whether it did.
fn extend(reach: &mut Reach, request: &SearchRequest, legs: &Legs, live: &Live, ranked: &Ranked) -> bool {
    let more = legs.all.iter().any(|leg| leg.layer == Layer::Chunks && leg.full);
    let few = request.group_by == GroupBy::Document && ranked.candidates.len() < request.top_k;
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

async fn fetch(vectors: &dyn VectorStore, ranked: &Ranked) -> Result<Shown> {
    let ids: Vec<_> = ranked.candidates.iter().map(|candidate| candidate.id).collect();
    let (l2, l3) = (ranked.led_from(Layer::L2), ranked.led_from(Layer::L3));
    let (chunks, l2, l3) = tokio::try_join!(
        get(vectors, Layer::Chunks, ids),
        get(vectors, Layer::L2, l2.iter().map(|node| node.id).collect()),
        get(vectors, Layer::L3, l3.iter().map(|node| node.id).collect()),
    )?;
    Ok(Shown { chunks, l2, l3 })
}

async fn get(
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
        [&self.chunks, &self.l2, &self.l3].into_iter().flatten().all(Option::is_some)
    }
}
