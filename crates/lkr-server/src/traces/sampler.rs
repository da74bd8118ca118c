//! Which spans are part of a trace.

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};

use super::{REQUEST, TASK};

/// Traces begin with a request or a task: what runs in the background outside of them is not traced. A caller's decision
/// is followed.
#[derive(Debug, Clone)]
pub(super) struct RootSampler;

impl ShouldSample for RootSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        _: TraceId,
        name: &str,
        _: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        let parent = parent.filter(|parent| parent.has_active_span()).map(|parent| parent.span());
        let is_sampled = match &parent {
            Some(parent) => parent.span_context().is_sampled(),
            None => matches!(name, REQUEST | TASK),
        };
        let decision = if is_sampled { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop };
        let trace_state =
            parent.map_or_else(TraceState::default, |parent| parent.span_context().trace_state().clone());
        SamplingResult { decision, attributes: Vec::new(), trace_state }
    }
}
