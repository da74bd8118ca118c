//! Sends spans to the collector in batches: OTLP over HTTP, in protobuf.

use std::{future::pending, time::Duration};

use lkr_outgoing::{
    HeaderMap, Limits, Method, Outgoing, Request,
    header::{CONTENT_TYPE, HeaderValue},
};
use opentelemetry::KeyValue;
use opentelemetry_proto::{
    tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    transform::{
        common::tonic::ResourceAttributesWithSchema, trace::tonic::group_spans_by_resource_and_scope,
    },
};
use opentelemetry_sdk::{Resource, trace::SpanData};
use prost::Message;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::queue::SpanReceiver;
use crate::metrics::Counters;

/// The most spans of a request to the collector.
const MAX_BATCH: usize = 512;

/// How long a batch waits to be filled.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);

/// How often a batch is sent before it is dropped.
const MAX_ATTEMPTS: u32 = 3;

/// The pause before the second attempt. It doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The limits of a request to the collector.
const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    total: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    body: 64 * 1024,
};

/// Where spans are sent, and how they are counted.
pub(crate) struct ExporterOptions {
    /// The address of the collector, without `/v1/traces`.
    pub(crate) endpoint: String,
    pub(crate) outgoing: Outgoing,
    /// The counters of spans by outcome.
    pub(crate) counters: Counters,
}

/// An exporter that runs until its shutdown.
#[derive(Debug)]
pub(crate) struct RunningExporter {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RunningExporter {
    /// Sends what is queued, but for no longer than `grace_period`.
    pub(crate) async fn shutdown(self, grace_period: Duration) {
        self.stop.send_replace(true);
        let abort = self.task.abort_handle();
        if timeout(grace_period, self.task).await.is_err() {
            abort.abort();
            tracing::warn!(
                grace_period_s = grace_period.as_secs(),
                "spans could not be sent before the stop; dropped"
            );
        }
    }
}

/// Starts to send spans.
pub(crate) fn start_exporter(spans: SpanReceiver, options: ExporterOptions) -> RunningExporter {
    let resource = Resource::builder_empty()
        .with_attribute(KeyValue::new("service.name", "lkr"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let (stop, stopped) = watch::channel(false);
    let exporter = Exporter { spans, options, resource: (&resource).into() };
    RunningExporter { stop, task: tokio::spawn(exporter.run(stopped)) }
}

struct Exporter {
    spans: SpanReceiver,
    options: ExporterOptions,
    resource: ResourceAttributesWithSchema,
}

/// Why a batch was not accepted.
struct Refusal {
    reason: String,
    is_retryable: bool,
}

impl Exporter {
    /// Sends batch after batch until the stop, and then what is left.
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let batch = self.next_batch(&mut stopped).await;
            self.count("dropped", self.spans.take_dropped());
            let is_last = *stopped.borrow() && batch.is_empty();
            if !batch.is_empty() {
                self.export(batch).await;
            }
            if is_last {
                return;
            }
        }
    }

    /// The next batch: full, or as large as it became within an interval. After the stop it does not wait.
    async fn next_batch(&mut self, stopped: &mut watch::Receiver<bool>) -> Vec<SpanData> {
        let mut batch = Vec::new();
        let deadline = Instant::now() + BATCH_INTERVAL;
        while batch.len() < MAX_BATCH {
            let room = MAX_BATCH - batch.len();
            let received = tokio::select! {
                biased;
                received = timeout_at(deadline, self.spans.spans.recv_many(&mut batch, room)) => received,
                () = is_stopped(stopped) => break,
            };
            match received {
                Ok(0) => is_stopped(stopped).await,
                Ok(_) => continue,
                Err(_) => {}
            }
            break;
        }
        batch
    }

    async fn export(&self, batch: Vec<SpanData>) {
        let count = batch.len() as u64;
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        match self.send_with_retries(&body).await {
            Ok(rejected) => {
                self.count("exported", count.saturating_sub(rejected));
                self.count("failed", rejected.min(count));
            }
            Err(reason) => {
                self.count("failed", count);
                tracing::warn!(spans = count, reason, "the trace collector did not accept spans; dropped");
            }
        }
    }

    /// Sends a request, again if that may help. Returns how many spans were rejected.
    async fn send_with_retries(&self, body: &[u8]) -> Result<u64, String> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..MAX_ATTEMPTS {
            match self.send(body).await {
                Ok(rejected) => return Ok(rejected),
                Err(Refusal { reason, is_retryable: false }) => return Err(reason),
                Err(Refusal { .. }) => sleep(pause).await,
            }
            pause *= 2;
        }
        self.send(body).await.map_err(|refusal| refusal.reason)
    }

    async fn send(&self, body: &[u8]) -> Result<u64, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (body, limits) = (body.to_vec().into(), LIMITS);
        let request = Request { headers, body, limits, ..Request::new(Method::POST, self.address()) };
        let failed = |error: lkr_outgoing::Error| Refusal {
            is_retryable: error.is_retryable(),
            reason: error.to_string(),
        };
        let response = self.options.outgoing.send(request).await.map_err(failed)?;
        let status = response.status.as_u16();
        if !response.status.is_success() {
            let is_retryable = matches!(status, 429 | 502 | 503 | 504);
            return Err(Refusal { reason: format!("the collector answered HTTP {status}"), is_retryable });
        }
        // The spans are accepted, even if the rest of the response is lost.
        let body = response.bytes().await.unwrap_or_default();
        let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or_default())
    }

    fn address(&self) -> String {
        format!("{}/v1/traces", self.options.endpoint)
    }

    fn count(&self, outcome: &str, spans: u64) {
        self.options.counters.add(&[outcome], spans as f64);
    }
}

/// Waits for the stop.
async fn is_stopped(stopped: &mut watch::Receiver<bool>) {
    if stopped.wait_for(|stop| *stop).await.is_err() {
        // The exporter is not stopped by losing its handle.
        pending::<()>().await;
    }
}
