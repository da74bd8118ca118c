//! Evaluation in this process: a knowledge base of its own, and every way to search it.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result};
use lkr_eval::{Comparison, Measures};

use crate::{
    collection::{Gold, Query, collection, name_of},
    eval::{
        Args,
        citations::Citations,
        judge::{Judge, Target},
        local_report::{Figures, LayerRecall, Row, Significance, SystemLatency},
        per_query::{self, Judged},
        show,
        systems::{FLAT, FLAT_RRF, Found, LAYERED, LAYERED_RRF, System, systems},
    },
    import::import_collection,
    local_kb::LocalKnowledgeBase,
    stats::{Latency, mean},
};

/// The layers, as the names of legs begin.
const LAYERS: [&str; 4] = ["l1", "l2", "l3", "chunks"];

/// What all queries have shown.
#[derive(Debug, Default)]
struct Seen {
    judged: Vec<Judged>,
    latencies: Vec<SystemLatency>,
    /// By target, layer and query.
    layers: Vec<LayerRecall>,
}

/// Runs the evaluation and prints the figures. Fails where a citation does not hold.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let temporary = tempfile::tempdir().context("make a folder")?;
    let data_dir = args.data_dir.as_deref().unwrap_or(temporary.path());
    let (figures, judged) = runtime.block_on(evaluate(args, data_dir, &gold))?;
    if let Some(file) = &args.per_query {
        per_query::write(file, &judged)?;
    }
    show(&figures, args.json.as_deref())?;
    Ok(if figures.citations.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn evaluate(args: &Args, data_dir: &Path, gold: &Gold) -> Result<(Figures, Vec<Judged>)> {
    let name = name_of(&args.dir)?;
    let inputs = collection(&args.dir)?;
    let mut citations = Citations::of(inputs.iter().map(|input| (input.source.clone(), input.text.clone())));
    let local_kb = LocalKnowledgeBase::open(data_dir, args.model.as_deref()).await?;
    import_collection(&local_kb.kb, inputs).await?;
    let judge = Judge { prefix: format!("{name}:"), gold };
    let mut seen = Seen::default();
    for system in systems(&local_kb, args.second_round) {
        ask_all(&system, &judge, &mut citations, &mut seen).await?;
    }
    let counts = local_kb.kb.stats().await?.counts;
    local_kb.kb.close().await;
    let figures = Figures {
        collection: name,
        documents: counts.l1,
        chunks: counts.chunks,
        second_round: args.second_round,
        results: rows(&seen.judged),
        significance: significance(&seen.judged),
        recall_by_layer: recall_by_layer(&seen.layers),
        latency: seen.latencies,
        citations: citations.finish(),
    };
    Ok((figures, seen.judged))
}

/// Asks a system all queries.
async fn ask_all(
    system: &System,
    judge: &Judge<'_>,
    citations: &mut Citations,
    seen: &mut Seen,
) -> Result<()> {
    let mut latencies = Vec::new();
    for query in &judge.gold.queries {
        let found = system.find(&query.text).await?;
        latencies.push(found.took);
        for hit in found.documents.iter().chain(&found.chunks) {
            citations.check(&hit.into())?;
        }
        for target in Target::ALL {
            let Some(ranking) = judge.ranking(target, query, &found) else { continue };
            let measures = Measures::of(&ranking.items, &ranking.gains);
            seen.judged.push(Judged::new(&query.id, system.name, target, measures, ranking.items));
            if system.name == LAYERED {
                seen.layers.extend(layer_recalls(judge, target, query, &found));
            }
        }
    }
    seen.latencies.push(SystemLatency { system: system.name, latency: Latency::of(latencies) });
    Ok(())
}

fn layer_recalls(judge: &Judge<'_>, target: Target, query: &Query, found: &Found) -> Vec<LayerRecall> {
    let of = |layer| {
        let recall = |cut| judge.recall(target, query, found, layer, cut);
        let ndcg = |kind| {
            let ranking = judge.ranking_by(target, query, found, &format!("{layer}_{kind}"))?;
            Some(Measures::of(&ranking.items, &ranking.gains).ndcg_at_10)
        };
        Some(LayerRecall {
            target,
            layer,
            recall_at_10: recall(10)?,
            recall_at_100: recall(100)?,
            sparse_ndcg_at_10: ndcg("sparse")?,
            dense_ndcg_at_10: ndcg("dense")?,
        })
    };
    LAYERS.into_iter().filter_map(of).collect()
}

/// The names of the systems that were asked, in their order.
const SYSTEMS: [&str; 6] = ["sparse", "dense", FLAT, FLAT_RRF, LAYERED, LAYERED_RRF];

fn rows(judged: &[Judged]) -> Vec<Row> {
    let row = |target, system| {
        let own = judged.iter().filter(|judged| judged.target == target && judged.system == system);
        let measures: Vec<Measures> = own.map(|judged| judged.measures).collect();
        (!measures.is_empty()).then(|| Row {
            target,
            system,
            queries: measures.len(),
            measures: Measures::mean(&measures),
        })
    };
    Target::ALL
        .into_iter()
        .flat_map(|target| SYSTEMS.into_iter().filter_map(move |s| row(target, s)))
        .collect()
}

fn significance(judged: &[Judged]) -> Vec<Significance> {
    let of = |target, system: &str| -> Vec<f64> {
        let own = judged.iter().filter(|judged| judged.target == target && judged.system == system);
        own.map(|judged| judged.measures.ndcg_at_10).collect()
    };
    let one = |target, (system, against)| {
        let pairs: Vec<(f64, f64)> = of(target, system).into_iter().zip(of(target, against)).collect();
        let comparison = Comparison::of(&pairs);
        (!pairs.is_empty()).then_some(Significance { target, system, against, comparison })
    };
    let pairs = [(LAYERED, FLAT), (LAYERED_RRF, FLAT_RRF)];
    Target::ALL.into_iter().flat_map(|target| pairs.into_iter().filter_map(move |p| one(target, p))).collect()
}

fn recall_by_layer(layers: &[LayerRecall]) -> Vec<LayerRecall> {
    let one = |target, layer| {
        let own: Vec<_> = layers.iter().filter(|seen| seen.target == target && seen.layer == layer).collect();
        let mean = |figure: fn(&LayerRecall) -> f64| mean(own.iter().map(|seen| figure(seen)));
        (!own.is_empty()).then(|| LayerRecall {
            target,
            layer,
            recall_at_10: mean(|seen| seen.recall_at_10),
            recall_at_100: mean(|seen| seen.recall_at_100),
            sparse_ndcg_at_10: mean(|seen| seen.sparse_ndcg_at_10),
            dense_ndcg_at_10: mean(|seen| seen.dense_ndcg_at_10),
        })
    };
    Target::ALL
        .into_iter()
        .flat_map(|target| LAYERS.into_iter().filter_map(move |l| one(target, l)))
        .collect()
}
