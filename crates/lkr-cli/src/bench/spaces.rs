//! What spaces and filters cost a search.

use std::{
    collections::HashSet,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use lkr::{
    FilterExpr, Layer, PointId, Scope, SearchFilters, SearchOptions, SearchRequest,
    ports::{EmbedKind, Embedder, VectorStore},
    retrieval::Searcher,
};
use lkr_vectors::{Collection, Filter, Include, Query as Leg, QueryVector};
use serde_json::json;

use crate::{
    bench::{
        copies::{Copies, CopyEmbedder},
        idle::wait_until_background_work_is_done,
        material::{Material, at_least_one, read_documents},
        space_bases::{DATE_KEY, SpaceBases},
    },
    collection::{Gold, Query},
    local_kb::LocalKnowledgeBase,
    stats::{Latency, mean},
};

/// The arguments of `lkr bench spaces`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keep the knowledge bases in this folder and reuse their documents.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    #[command(flatten)]
    material: Material,
    /// Measure with this many spaces. Each contains copies of the same documents, with slightly different texts and vectors.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    spaces: usize,
    /// Use the first N documents of the collection. The first 20 of gitlab_handbook have about 1,000 chunks.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least_one)]
    documents: usize,
    /// Run this many queries.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    queries: usize,
}

/// The number of queries that warm up the caches.
const WARM_UP_QUERIES: usize = 10;

/// The shares of documents that pass a filter: one in each of these numbers.
const SHARES: [usize; 3] = [10, 100, 1000];

/// The number of hits whose recall is measured.
const DEPTH: usize = 10;

/// Latencies, each with what it is compared with.
#[derive(Debug, Default)]
pub(super) struct SpacesReport {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    heading: String,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    latency: Latency,
    reference: Latency,
    /// The share of the exact nearest neighbours that is found.
    recall: Option<f64>,
}

/// A search that is measured: on which base, in which scope, with which filter.
struct Measured<'a> {
    name: String,
    searcher: &'a Searcher,
    scope: Scope,
    filters: SearchFilters,
}

pub(super) async fn measure(args: &Args) -> Result<SpacesReport> {
    let inputs = read_documents(&args.material.dir, Some(args.documents))?;
    let mut queries = Gold::read(&args.material.dir, None)?.queries;
    queries.truncate(args.queries);
    let embedder: Arc<dyn Embedder> = Arc::new(CopyEmbedder::new(args.material.embedder()?));
    let bases = SpaceBases::build(&args.data_dir, &embedder, &Copies::of(inputs), args.spaces).await?;
    let mut report = SpacesReport::default();
    report.spaces(&bases, &queries, "right after ingestion").await?;
    wait_until_background_work_is_done().await;
    report.spaces(&bases, &queries, "with complete clusters").await?;
    report.filters(&bases, &embedder, &queries).await?;
    bases.close().await;
    Ok(report)
}

impl SpacesReport {
    /// Compares searches in one of many spaces and in all of them with searches in bases that have nothing else.
    async fn spaces(&mut self, bases: &SpaceBases, queries: &[Query], when: &str) -> Result<()> {
        let searcher = |base: &LocalKnowledgeBase| base.searcher(SearchOptions::default());
        let (many, one, alone) = (searcher(&bases.many), searcher(&bases.one), searcher(&bases.alone));
        let measured = Scope::of(bases.measured()?.clone());
        let search = |name: &str, searcher, scope| Measured {
            name: name.to_owned(),
            searcher,
            scope,
            filters: SearchFilters::default(),
        };
        let searches = [
            search("the space alone", &alone, measured.clone()),
            search("one of many spaces", &many, measured),
            search("one space of all", &one, Scope::of(lkr::SpaceName::default())),
            search("all spaces but a hidden one", &many, bases.all()),
        ];
        let latencies = latencies(&searches, queries).await?;
        let chunks = bases.many.kb.stats(&Scope::All).await?.counts.chunks;
        let heading = format!("{chunks} chunks, {} queries, {when}", queries.len());
        let rows = searches.into_iter().zip(latencies).collect::<Vec<_>>();
        let rows = rows.chunks(2).flat_map(|pair| {
            let reference = pair.first().map_or_else(Latency::default, |(_, latency)| *latency);
            pair.iter().map(move |(search, latency)| Row {
                name: search.name.clone(),
                latency: *latency,
                reference,
                recall: None,
            })
        });
        self.sections.push(Section { heading, rows: rows.collect() });
        Ok(())
    }

    /// Compares filtered searches with those without a filter.
    async fn filters(
        &mut self,
        bases: &SpaceBases,
        embedder: &Arc<dyn Embedder>,
        queries: &[Query],
    ) -> Result<()> {
        let searcher = bases.one.searcher(SearchOptions::default());
        let mut searches = vec![Measured {
            name: "no filter".to_owned(),
            searcher: &searcher,
            scope: Scope::All,
            filters: SearchFilters::default(),
        }];
        let mut recalls = vec![None];
        for share in SHARES {
            let field = format!("metadata.{DATE_KEY}");
            let expr = json!({ "field": field, "gte": bases.date_of_last(share)? });
            let expr = FilterExpr::parse("where", &expr).context("a filter expression")?;
            recalls.push(Some(recall(&*bases.one.vectors, embedder, queries, &Filter::from(&expr)).await?));
            searches.push(Measured {
                name: format!("one document in {share} by date"),
                searcher: &searcher,
                scope: Scope::All,
                filters: SearchFilters { filter_expr: Some(expr), ..SearchFilters::default() },
            });
        }
        let latencies = latencies(&searches, queries).await?;
        let reference = latencies.first().copied().unwrap_or_default();
        let rows = searches.iter().zip(latencies).zip(recalls);
        let rows = rows.map(|((search, latency), recall)| Row {
            name: search.name.clone(),
            latency,
            reference,
            recall,
        });
        let chunks = bases.one.kb.stats(&Scope::All).await?.counts.chunks;
        let heading = format!("{chunks} chunks, {} queries, filtered", queries.len());
        self.sections.push(Section { heading, rows: rows.collect() });
        Ok(())
    }
}

/// Runs each query in all ways, starting with another one each time.
async fn latencies(searches: &[Measured<'_>], queries: &[Query]) -> Result<Vec<Latency>> {
    for query in queries.iter().take(WARM_UP_QUERIES) {
        for measured in searches {
            search(measured, query).await?;
        }
    }
    let mut samples = vec![Vec::new(); searches.len()];
    for (turn, query) in queries.iter().enumerate() {
        let mut order: Vec<_> = searches.iter().zip(&mut samples).collect();
        order.rotate_left(turn % searches.len());
        for (measured, sample) in order {
            sample.push(search(measured, query).await?);
        }
    }
    Ok(samples.into_iter().map(Latency::of).collect())
}

async fn search(measured: &Measured<'_>, query: &Query) -> Result<Duration> {
    let request = SearchRequest {
        scope: measured.scope.clone(),
        filters: measured.filters.clone(),
        ..SearchRequest::new(query.text.as_str())
    };
    let began = Instant::now();
    measured.searcher.search(&request).await?;
    Ok(began.elapsed())
}

/// The share of the ten exact nearest chunks that pass the filter which dense queries find.
async fn recall(
    vectors: &dyn VectorStore,
    embedder: &Arc<dyn Embedder>,
    queries: &[Query],
    filter: &Filter,
) -> Result<f64> {
    let collection = Collection::from(Layer::Chunks);
    let mut passing = Vec::new();
    let mut after = None;
    loop {
        let page = vectors.scroll(&collection, filter, after.as_ref(), 1000, Include::All).await?;
        passing.extend(page.points.into_iter().filter_map(|point| Some((point.id, point.dense?))));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut recalls = Vec::new();
    for query in queries {
        let vector = embedder.embed(EmbedKind::Query, std::slice::from_ref(&query.text)).await?.pop();
        let vector = vector.context("the model returned no vector")?;
        let exact = nearest(&vector, &passing);
        let leg = Leg {
            collection: collection.clone(),
            vector: QueryVector::Dense(vector),
            scope: Scope::All,
            filter: filter.clone(),
            limit: DEPTH,
        };
        let hits = vectors.query_batch(&[leg]).await?.into_iter().flatten();
        let found: HashSet<PointId> = hits.map(|hit| hit.id).collect();
        recalls.push(exact.iter().filter(|id| found.contains(id)).count() as f64 / exact.len().max(1) as f64);
    }
    Ok(mean(recalls.into_iter()))
}

/// The points with the ten highest cosines.
fn nearest(query: &[f32], points: &[(PointId, Vec<f32>)]) -> Vec<PointId> {
    let cosine =
        |vector: &[f32]| query.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let mut scored: Vec<_> = points.iter().map(|(id, vector)| (cosine(vector), *id)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(DEPTH).map(|(_, id)| id).collect()
}

impl fmt::Display for SpacesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Section { heading, rows } in &self.sections {
            writeln!(f, "{heading}")?;
            for Row { name, latency: Latency { p50_ms, p99_ms, .. }, reference, recall } in rows {
                let ratio = p50_ms / reference.p50_ms;
                write!(
                    f,
                    "  {name:<28} {p50_ms:.2} ms p50, {p99_ms:.2} p99: {ratio:.3} of the reference's p50"
                )?;
                if let Some(recall) = recall {
                    write!(f, ", recall@{DEPTH} {recall:.4}")?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
