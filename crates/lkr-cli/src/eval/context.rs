//! Evaluation of contexts: whether the judged passages are in them, against the best chunks in order.

use std::{collections::HashSet, fmt, process::ExitCode};

use anyhow::{Context, Result};
use lkr::{
    CharSpan, ContextRequest, DocId, KnowledgeBase, SearchRequest,
    files::{FileReader, FileTools},
};
use lkr_eval::Comparison;
use lkr_text::prompt_tokens;
use serde::Serialize;

use crate::{
    collection::{Gold, Query, collection, name_of},
    eval::{args::Args, check_judgements, output::Output},
    import::{ImportAs, import_collection},
    local_kb::LocalKnowledgeBase,
    stats::mean,
};

/// The budgets in tokens.
const BUDGETS: [usize; 4] = [500, 1_000, 2_000, 4_000];
/// The share of a passage's code points that must be in a context.
const COVERED: f64 = 0.8;

/// A part of a document that is in a context.
struct Part {
    source: String,
    span: CharSpan,
}

/// The figures of a collection by budget.
#[derive(Debug, Serialize)]
struct ContextReport {
    collection: String,
    budgets: Vec<BudgetReport>,
}

/// The figures of a budget.
#[derive(Debug, Serialize)]
struct BudgetReport {
    tokens: usize,
    /// The share of the queries of which a judged passage is in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    passages: Option<Compared>,
    /// The share of the judged spans' characters that are in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_recall: Option<Compared>,
    /// The share of the context's characters that are in judged spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_precision: Option<Compared>,
}

/// Means over the queries, and their comparison.
#[derive(Debug, Serialize)]
struct Compared {
    queries: usize,
    context: f64,
    best_chunks: f64,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Runs the evaluation and prints the figures.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let output = Output::open(args.json.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let temporary = tempfile::tempdir().context("create a temporary folder")?;
    let data_dir = args.data_dir.as_deref().unwrap_or(temporary.path());
    let report = runtime.block_on(async {
        let name = name_of(&args.dir)?;
        let inputs = collection(&args.dir)?;
        check_judgements(&gold, &name, &inputs)?;
        let local_kb = LocalKnowledgeBase::of_collection(data_dir, &inputs, args.embedder()?).await?;
        let spool = tempfile::tempdir().context("create a temporary folder")?;
        let reader = FileReader::in_process(spool.path().to_owned(), FileTools::default())?;
        let import_as = if args.as_files { ImportAs::MarkdownFiles(&reader) } else { ImportAs::Texts };
        import_collection(&local_kb.kb, inputs, import_as).await?;
        let report = evaluate(&local_kb.kb, &gold, name).await;
        local_kb.kb.close().await;
        report
    })?;
    output.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

async fn evaluate(kb: &KnowledgeBase, gold: &Gold, collection: String) -> Result<ContextReport> {
    let mut budgets = Vec::new();
    for tokens in BUDGETS {
        let (mut passages, mut recalls, mut precisions) = (Vec::new(), Vec::new(), Vec::new());
        for query in &gold.queries {
            let searched =
                async { Ok((context(kb, query, tokens).await?, best_chunks(kb, query, tokens).await?)) };
            let searched: Result<_> = searched.await;
            let (context, chunks) = searched.with_context(|| format!("search for query {}", query.id))?;
            let judged = judged_passages(gold, query, &collection);
            if !judged.is_empty() {
                let has = |parts: &[Part]| {
                    f64::from(u8::from(judged.iter().any(|it| covered(it, parts) >= COVERED)))
                };
                passages.push((has(&context), has(&chunks)));
            }
            let spans = judged_spans(query, &collection);
            if !spans.is_empty() {
                let (of_context, of_chunks) = (overlap(&spans, &context), overlap(&spans, &chunks));
                let total = length(&spans);
                recalls.push((of_context / total, of_chunks / total));
                let share = |found: f64, parts: &[Part]| found / length(parts).max(1.0);
                precisions.push((share(of_context, &context), share(of_chunks, &chunks)));
            }
        }
        budgets.push(BudgetReport {
            tokens,
            passages: compared(&passages),
            span_recall: compared(&recalls),
            span_precision: compared(&precisions),
        });
    }
    Ok(ContextReport { collection, budgets })
}

fn compared(pairs: &[(f64, f64)]) -> Option<Compared> {
    (!pairs.is_empty()).then(|| Compared {
        queries: pairs.len(),
        context: mean(pairs.iter().map(|pair| pair.0)),
        best_chunks: mean(pairs.iter().map(|pair| pair.1)),
        comparison: Comparison::of(pairs),
    })
}

async fn context(kb: &KnowledgeBase, query: &Query, max_tokens: usize) -> Result<Vec<Part>> {
    let request = ContextRequest { max_tokens, ..ContextRequest::new(&query.text) };
    let passages = kb.context(&request).await?.passages;
    let part = |source, start, end| Part { source, span: CharSpan { start, end } };
    Ok(passages
        .into_iter()
        .map(|passage| part(passage.source, passage.char_start, passage.char_end))
        .collect())
}

/// The best chunks of a search in order until one does not fit, each with a marker and its headings, and each document
/// with its title.
async fn best_chunks(kb: &KnowledgeBase, query: &Query, max_tokens: usize) -> Result<Vec<Part>> {
    let request = SearchRequest { top_k: 100, ..SearchRequest::new(&query.text) };
    let response = kb.search(&request).await?.response;
    let (mut parts, mut tokens) = (Vec::new(), 0);
    let mut titled: HashSet<DocId> = HashSet::new();
    for result in &response.results {
        let head = format!("[{}] {}\n", parts.len() + 1, result.path.join(" > "));
        let title =
            if titled.insert(result.doc_id) { format!("# {}\n\n", result.title) } else { String::new() };
        tokens += prompt_tokens(&title) + prompt_tokens(&head) + prompt_tokens(&result.text) + 1;
        if tokens > max_tokens {
            break;
        }
        let span = CharSpan { start: result.char_start, end: result.char_end };
        parts.push(Part { source: result.source.clone(), span });
    }
    Ok(parts)
}

/// The judged passages with a gain.
fn judged_passages(gold: &Gold, query: &Query, collection: &str) -> Vec<Part> {
    let is_judged = |id: &String| query.passages.get(id).is_some_and(|&gain| gain > 0.0);
    let of_document = |(document, sections): (&String, &Vec<(CharSpan, String)>)| {
        let source = format!("{collection}:{document}");
        let judged = sections.iter().filter(|(_, id)| is_judged(id));
        judged.map(|&(span, _)| Part { source: source.clone(), span }).collect::<Vec<_>>()
    };
    gold.sections.iter().flat_map(of_document).collect()
}

fn judged_spans(query: &Query, collection: &str) -> Vec<Part> {
    let of_document = |(document, spans): (&String, &Vec<CharSpan>)| {
        let source = format!("{collection}:{document}");
        spans.iter().map(|&span| Part { source: source.clone(), span }).collect::<Vec<_>>()
    };
    query.spans.iter().flat_map(of_document).collect()
}

/// The share of a passage that is in the parts, which do not overlap.
fn covered(passage: &Part, parts: &[Part]) -> f64 {
    common(passage, parts) / f64::from(passage.span.len().max(1))
}

fn overlap(all: &[Part], parts: &[Part]) -> f64 {
    all.iter().map(|one| common(one, parts)).sum()
}

fn common(one: &Part, parts: &[Part]) -> f64 {
    let of_part = |part: &Part| {
        let (start, end) = (one.span.start.max(part.span.start), one.span.end.min(part.span.end));
        f64::from(if part.source == one.source { end.saturating_sub(start) } else { 0 })
    };
    parts.iter().map(of_part).sum()
}

fn length(parts: &[Part]) -> f64 {
    parts.iter().map(|part| f64::from(part.span.len())).sum()
}

impl fmt::Display for ContextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: contexts against the best chunks in order", self.collection)?;
        for BudgetReport { tokens, passages, span_recall, span_precision } in &self.budgets {
            let rows = [
                ("passages", passages),
                ("recall of spans", span_recall),
                ("precision of spans", span_precision),
            ];
            for (name, row) in rows {
                let Some(Compared { queries, context, best_chunks, comparison }) = row else { continue };
                let Comparison { p, better, worse, .. } = comparison;
                writeln!(
                    f,
                    "  {tokens:>5} tokens  {name:<20} {context:.4}  best chunks {best_chunks:.4}  {queries} queries, \
                     p = {p:.5}, {better} better, {worse} worse"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passage_is_covered_by_the_parts_of_its_document() {
        let part =
            |source: &str, start, end| Part { source: source.to_owned(), span: CharSpan { start, end } };
        let parts = [part("a", 0, 4), part("b", 0, 10), part("a", 6, 9)];
        assert_eq!(covered(&part("a", 0, 10), &parts), 0.7);
        assert_eq!(covered(&part("c", 0, 10), &parts), 0.0);
        assert_eq!((overlap(&[part("a", 2, 7)], &parts), length(&parts)), (3.0, 17.0));
    }
}
