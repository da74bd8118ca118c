//! Evaluation of every search system on a knowledge base in this process.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result};
use lkr::{
    Scope,
    files::{FileReader, FileTools},
};
use lkr_eval::{Comparison, Measures};

use crate::{
    collection::{Gold, Query, collection, name_of},
    eval::{
        args::Args,
        check_judgements,
        citations::Citations,
        judge::{Judge, Target},
        local_report::{LayerRecall, LocalReport, MeasuresRow, Significance, SystemLatency},
        output::Output,
        per_query::{self, JudgedQuery},
        systems::{FLAT, FLAT_RRF, LAYERED, LAYERED_RRF, System, SystemResults, systems},
    },
    import::{ImportAs, import_collection},
    local_kb::LocalKnowledgeBase,
    output_file::OutputFile,
    stats::{Latency, mean},
};

/// The names of the layers, with which the names of legs begin.
const LAYERS: [&str; 4] = ["l1", "l2", "l3", "chunks"];

/// The results of all queries.
#[derive(Debug, Default)]
struct Collected {
    judged: Vec<JudgedQuery>,
    latencies: Vec<SystemLatency>,
    /// Recalls by target, layer and query.
    layers: Vec<LayerRecall>,
}

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let output = Output::open(args.json.as_deref())?;
    let per_query = args.per_query.as_deref().map(OutputFile::open).transpose()?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let temporary = tempfile::tempdir().context("create a temporary folder")?;
    let data_dir = args.data_dir.as_deref().unwrap_or(temporary.path());
    let (report, judged) = runtime.block_on(evaluate(args, data_dir, &gold))?;
    if let Some(file) = per_query {
        per_query::write(file, &judged)?;
    }
    output.print(&report)?;
    Ok(if report.citations.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn evaluate(args: &Args, data_dir: &Path, gold: &Gold) -> Result<(LocalReport, Vec<JudgedQuery>)> {
    let name = name_of(&args.dir)?;
    let inputs = collection(&args.dir)?;
    check_judgements(gold, &name, &inputs)?;
    let mut citations = Citations::of(inputs.iter().map(|input| (input.source.clone(), input.text.clone())));
    let local_kb = LocalKnowledgeBase::of_collection(data_dir, &inputs, args.embedder()?).await?;
    let spool = tempfile::tempdir().context("create a temporary folder")?;
    let reader = FileReader::in_process(spool.path().to_owned(), FileTools::default())?;
    let import_as = if args.as_files { ImportAs::MarkdownFiles(&reader) } else { ImportAs::Texts };
    import_collection(&local_kb.kb, inputs, import_as).await?;
    let judge = Judge { prefix: format!("{name}:"), gold };
    let mut collected = Collected::default();
    for system in systems(&local_kb, args.second_round) {
        run_queries(&system, &judge, &mut citations, &mut collected).await?;
    }
    let counts = local_kb.kb.stats(&Scope::All).await?.counts;
    local_kb.kb.close().await;
    let report = LocalReport {
        collection: name,
        documents: counts.l1,
        chunks: counts.chunks,
        second_round: args.second_round,
        results: rows(&collected.judged),
        significance: significance(&collected.judged),
        recall_by_layer: recall_by_layer(&collected.layers),
        latency: collected.latencies,
        citations: citations.finish(),
    };
    Ok((report, collected.judged))
}

/// Runs all queries on a system.
async fn run_queries(
    system: &System,
    judge: &Judge<'_>,
    citations: &mut Citations,
    collected: &mut Collected,
) -> Result<()> {
    let mut latencies = Vec::new();
    for query in &judge.gold.queries {
        let found =
            system.find(&query.text).await.with_context(|| format!("search for query {}", query.id))?;
        latencies.push(found.took);
        for hit in found.documents.iter().chain(&found.chunks) {
            citations.check(&hit.into())?;
        }
        for target in Target::ALL {
            let Some(ranking) = judge.ranking(target, query, &found) else { continue };
            let measures = Measures::of(&ranking.items, &ranking.gains);
            collected.judged.push(JudgedQuery::new(&query.id, system.name, target, measures, ranking.items));
            if system.name == LAYERED {
                collected.layers.extend(layer_recalls(judge, target, query, &found));
            }
        }
    }
    collected.latencies.push(SystemLatency { system: system.name, latency: Latency::of(latencies) });
    Ok(())
}

fn layer_recalls(
    judge: &Judge<'_>,
    target: Target,
    query: &Query,
    found: &SystemResults,
) -> Vec<LayerRecall> {
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

/// The names of the systems, in the order of the report.
const SYSTEMS: [&str; 6] = ["sparse", "dense", FLAT, FLAT_RRF, LAYERED, LAYERED_RRF];

fn rows(judged: &[JudgedQuery]) -> Vec<MeasuresRow> {
    let row = |target, system| {
        let of_system = judged.iter().filter(|judged| judged.target == target && judged.system == system);
        let measures: Vec<Measures> = of_system.map(|judged| judged.measures).collect();
        (!measures.is_empty()).then(|| MeasuresRow {
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

fn significance(judged: &[JudgedQuery]) -> Vec<Significance> {
    let of = |target, system: &str| -> Vec<f64> {
        let of_system = judged.iter().filter(|judged| judged.target == target && judged.system == system);
        of_system.map(|judged| judged.measures.ndcg_at_10).collect()
    };
    let entry = |target, (system, against)| {
        let pairs: Vec<(f64, f64)> = of(target, system).into_iter().zip(of(target, against)).collect();
        let comparison = Comparison::of(&pairs);
        (!pairs.is_empty()).then_some(Significance { target, system, against, comparison })
    };
    let pairs = [(LAYERED, FLAT), (LAYERED_RRF, FLAT_RRF)];
    Target::ALL
        .into_iter()
        .flat_map(|target| pairs.into_iter().filter_map(move |p| entry(target, p)))
        .collect()
}

fn recall_by_layer(layers: &[LayerRecall]) -> Vec<LayerRecall> {
    let entry = |target, layer| {
        let of_system: Vec<_> = layers
            .iter()
            .filter(|collected| collected.target == target && collected.layer == layer)
            .collect();
        let mean =
            |figure: fn(&LayerRecall) -> f64| mean(of_system.iter().map(|collected| figure(collected)));
        (!of_system.is_empty()).then(|| LayerRecall {
            target,
            layer,
            recall_at_10: mean(|collected| collected.recall_at_10),
            recall_at_100: mean(|collected| collected.recall_at_100),
            sparse_ndcg_at_10: mean(|collected| collected.sparse_ndcg_at_10),
            dense_ndcg_at_10: mean(|collected| collected.dense_ndcg_at_10),
        })
    };
    Target::ALL
        .into_iter()
        .flat_map(|target| LAYERS.into_iter().filter_map(move |l| entry(target, l)))
        .collect()
}
