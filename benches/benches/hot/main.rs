//! Benchmarks of the functions that ingestion and searches spend their time in.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that cannot run ends")]

mod cpu_time;
mod model;
mod search;
mod store;
mod text;

use criterion::{Criterion, criterion_group, criterion_main};

use crate::cpu_time::CpuTime;

/// A hundred samples would take minutes in all, and few suffice for processor time.
const SAMPLES: usize = 20;

criterion_group! {
    name = hot;
    config = Criterion::default().with_measurement(CpuTime).sample_size(SAMPLES);
    targets = text::benches, store::benches, search::benches, model::benches
}
criterion_main!(hot);
