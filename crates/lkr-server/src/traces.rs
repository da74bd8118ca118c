//! Traces: spans of requests and tasks, sent to an OpenTelemetry collector if the configuration names one.
//!
//! Spans have names that are constants, and fields that are ids, counts, names of routes and statuses: never the text of a
//! query or a document. Without a collector no span is made.

mod exporter;
mod ids;
mod queue;
mod sampler;

use lkr::Task;
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt, TracerProvider},
};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Level, Metadata, Span, Subscriber, debug_span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, filter_fn},
    registry::LookupSpan,
};

pub(crate) use exporter::{ExporterOptions, start_exporter};
pub(crate) use ids::{parse_traceparent, request_trace_id};
pub(crate) use queue::SpanReceiver;

/// The name of the root span of a request.
const REQUEST: &str = "request";

/// The name of the root span of an attempt of a task.
const TASK: &str = "task";

/// The layer that collects the spans of requests and tasks, and the receiver of those that have ended.
pub(crate) fn trace_layer<S>() -> (impl Layer<S> + use<S>, SpanReceiver)
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let (queue, receiver) = queue::span_queue();
    let provider = SdkTracerProvider::builder()
        .with_id_generator(ids::TraceIds::default())
        .with_sampler(sampler::RootSampler)
        .with_resource(Resource::builder_empty().build())
        .with_span_processor(queue)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("lkr"))
        .with_location(false)
        .with_threads(false)
        .with_target(false);
    let filter = filter_fn(is_traced).with_max_level_hint(LevelFilter::DEBUG);
    (layer.with_filter(filter), receiver)
}

/// Traces consist of the spans of this workspace at the level `debug`. Log lines are not part of them.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && *metadata.level() == Level::DEBUG && metadata.target().starts_with("lkr")
}

/// The root span of a request. A caller's span is its parent.
pub(crate) fn request_span(request_id: &str, method: &str, caller: Option<SpanContext>) -> Span {
    let span = debug_span!(
        parent: None,
        REQUEST,
        otel.kind = "server",
        otel.status_code = field::Empty,
        request_id,
        http.request.method = method,
        http.route = field::Empty,
        http.response.status_code = field::Empty,
    );
    if let Some(caller) = caller {
        // It fails if there is no collector.
        let _ = span.set_parent(Context::new().with_remote_span_context(caller));
    }
    ids::start(&span, request_trace_id(request_id));
    span
}

/// Notes the response of a request in its root span, which gets the name of its route.
pub(crate) fn record_response(span: &Span, method: &str, route: &str, status: u16) {
    if span.is_disabled() {
        return;
    }
    span.record("http.route", route);
    span.record("http.response.status_code", status);
    if status >= 500 {
        span.record("otel.status_code", "error");
    }
    span.context().span().update_name(format!("{method} {route}"));
}

/// The root span of an attempt of a task. Its trace has the task's id, and links to the request that submitted the task.
pub(crate) fn task_span(task: &Task) -> Span {
    let span = debug_span!(parent: None, TASK, task_id = %task.task_id, kind = task.kind.name(), attempt = task.attempts + 1);
    if let Some(origin) = task.input.origin.as_deref().and_then(parse_traceparent) {
        span.add_link(origin);
    }
    ids::start(&span, ids::trace_id(*task.task_id.as_bytes()));
    span
}

/// The current span as a W3C `traceparent`; `None` if it is not part of a trace.
pub(crate) fn current_traceparent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    let current = span.span_context();
    let is_sampled = current.is_valid() && current.is_sampled();
    is_sampled.then(|| format!("00-{}-{}-01", current.trace_id(), current.span_id()))
}
