//! The kinds of metrics. A metric that cannot be registered is omitted and logged.

use std::time::Duration;

use prometheus::{
    Counter, CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, Opts, Registry,
    core::Collector,
};

use super::families::MetricFamily;

/// Counters with labels.
#[derive(Debug, Clone)]
pub(crate) struct Counters(Option<CounterVec>);

/// Histograms of durations in seconds, with labels.
#[derive(Debug, Clone)]
pub(crate) struct Durations(Option<HistogramVec>);

/// Gauges with labels. One that was never set is not shown.
#[derive(Debug, Clone)]
pub(crate) struct Gauges(Option<GaugeVec>);

impl Counters {
    /// Registers counters. A counter without labels begins at 0; others are shown once they were increased.
    pub(super) fn register(registry: &Registry, family: &MetricFamily) -> Self {
        let counters = CounterVec::new(Opts::new(family.name, family.help), &label_names(family));
        let counters = register(registry, family, counters);
        if family.labels.is_empty() {
            let _: Option<Counter> =
                counters.as_ref().map(|counters| counters.with_label_values::<&str>(&[]));
        }
        Self(counters)
    }

    /// Increases a counter by one.
    pub(crate) fn increase(&self, labels: &[&str]) {
        self.add(labels, 1.0);
    }

    /// Increases a counter.
    pub(crate) fn add(&self, labels: &[&str], number: f64) {
        if let Some(counters) = &self.0 {
            counters.with_label_values(labels).inc_by(number);
        }
    }

    /// Raises a counter to a number that is counted elsewhere. It never falls.
    pub(super) fn raise(&self, labels: &[&str], number: f64) {
        if let Some(counters) = &self.0 {
            let counter = counters.with_label_values(labels);
            counter.inc_by((number - counter.get()).max(0.0));
        }
    }
}

impl Durations {
    pub(super) fn register(registry: &Registry, family: &MetricFamily, buckets: &[f64]) -> Self {
        let options = HistogramOpts::new(family.name, family.help).buckets(buckets.to_vec());
        let histograms = register(registry, family, HistogramVec::new(options, &label_names(family)));
        if family.labels.is_empty() {
            let _: Option<Histogram> = histograms.as_ref().map(|all| all.with_label_values::<&str>(&[]));
        }
        Self(histograms)
    }

    /// Adds a duration.
    pub(crate) fn observe(&self, labels: &[&str], took: Duration) {
        if let Some(histograms) = &self.0 {
            histograms.with_label_values(labels).observe(took.as_secs_f64());
        }
    }
}

impl Gauges {
    pub(super) fn register(registry: &Registry, family: &MetricFamily) -> Self {
        let gauges = GaugeVec::new(Opts::new(family.name, family.help), &label_names(family));
        Self(register(registry, family, gauges))
    }

    /// Sets a gauge.
    pub(super) fn set(&self, labels: &[&str], value: f64) {
        if let Some(gauges) = &self.0 {
            let gauge: Gauge = gauges.with_label_values(labels);
            gauge.set(value);
        }
    }
}

fn label_names(family: &MetricFamily) -> Vec<&'static str> {
    family.labels.iter().map(|label| label.name).collect()
}

fn register<T: Collector + Clone + 'static>(
    registry: &Registry,
    family: &MetricFamily,
    metric: prometheus::Result<T>,
) -> Option<T> {
    let registered = metric.and_then(|metric| {
        registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    });
    registered
        .inspect_err(
            |error| tracing::error!(%error, metric = family.name, "cannot register a metric; it is omitted"),
        )
        .ok()
}
