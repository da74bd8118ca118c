//! Language, terms and layers of texts.

use std::hint::black_box;

use criterion::Criterion;
use lkr_layers::{LayerOptions, layer};
use lkr_models::{SparseEncoder, calibration_passages};
use lkr_parsers::{Markdown, Parser, Source};
use lkr_text::{Language, Literals, detect, highlights, query_terms};

use crate::cpu_time::CpuTime;

/// The mean number of terms of a passage, as encoders are given it.
const AVERAGE_TERMS: f32 = 78.0;

/// The first words of a passage, as a query.
pub(crate) fn first_words(passage: &str, count: usize) -> String {
    passage.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

/// The passages as one Markdown text, with a heading above every fifth.
fn markdown() -> String {
    let mut text = String::from("# Passages\n\n");
    for (number, passage) in calibration_passages().enumerate() {
        if number % 5 == 0 {
            text += &format!("## Part {number}\n\n");
        }
        text += passage;
        text += "\n\n";
    }
    text
}

pub(crate) fn benches(criterion: &mut Criterion<CpuTime>) {
    let passages: Vec<&str> = calibration_passages().collect();
    let mut next = passages.iter().copied().cycle();
    let mut group = criterion.benchmark_group("text");
    group.bench_function("language of a passage", |bencher| {
        bencher.iter(|| black_box(detect(next.next().unwrap())));
    });
    group.bench_function("term weights of a passage", |bencher| {
        bencher.iter(|| {
            let passage = next.next().unwrap();
            black_box(SparseEncoder::default().passage(passage, Some(Language::ENGLISH), AVERAGE_TERMS))
        });
    });
    group.bench_function("term weights of a query", |bencher| {
        let mut queries = passages.iter().map(|passage| first_words(passage, 8)).cycle();
        bencher.iter(|| black_box(SparseEncoder::default().query(&queries.next().unwrap())));
    });
    group.bench_function("highlights of a passage", |bencher| {
        let query = query_terms("people who work with water in the city");
        let literals = Literals::default();
        bencher
            .iter(|| black_box(highlights(&query, &literals, next.next().unwrap(), Some(Language::ENGLISH))));
    });
    group.finish();

    let text = markdown();
    let mut group = criterion.benchmark_group("layers");
    group.bench_function("parse Markdown", |bencher| {
        bencher.iter(|| black_box(Markdown.parse(&Source::from(text.as_str())).unwrap()));
    });
    let parsed = Markdown.parse(&Source::from(text.as_str())).unwrap();
    group.bench_function("layer a document", |bencher| {
        bencher.iter(|| black_box(layer(&parsed, "Passages", &LayerOptions::default())));
    });
    group.finish();
}
