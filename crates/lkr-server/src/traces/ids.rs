//! The ids of traces. The trace of a request has the request's id, so that each is found by the other.

use std::cell::Cell;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

thread_local! {
    /// The id of the trace that this thread starts next.
    static NEXT: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// Makes ids: random ones, except for the trace of a root span that [`start`] starts.
#[derive(Debug, Default)]
pub(super) struct TraceIds {
    random: RandomIdGenerator,
}

impl IdGenerator for TraceIds {
    fn new_trace_id(&self) -> TraceId {
        NEXT.take().unwrap_or_else(|| self.random.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.random.new_span_id()
    }
}

/// Starts a root span in the trace with this id. A span with a remote parent belongs to the parent's trace.
pub(super) fn start(span: &Span, trace: TraceId) {
    if span.is_disabled() {
        return;
    }
    NEXT.set(Some(trace));
    // Asking for the context starts the span.
    let _: Context = span.context();
    NEXT.set(None);
}

/// The trace of a request: its id, if that is 32 hexadecimal digits (with or without the hyphens of a UUID), as all ids
/// are that the server makes; else the first 16 bytes of its SHA-256.
pub(crate) fn request_trace_id(request_id: &str) -> TraceId {
    let digits = if request_id.len() == 36 { request_id.replace('-', "") } else { request_id.to_owned() };
    let own = if digits.len() == 32 { u128::from_str_radix(&digits, 16).ok() } else { None };
    let digest: [u8; 32] = Sha256::digest(request_id).into();
    let (first, _) = digest.split_at(16);
    let derived = || first.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    own.map(TraceId::from).filter(|id| *id != TraceId::INVALID).unwrap_or_else(|| TraceId::from(derived()))
}

/// The trace with these bytes as its id.
pub(super) fn trace_id(bytes: [u8; 16]) -> TraceId {
    TraceId::from_bytes(bytes)
}

/// Reads a `traceparent` header of W3C Trace Context: `<version>-<trace>-<span>-<flags>`. A later version may have more
/// parts.
pub(crate) fn parse_traceparent(text: &str) -> Option<SpanContext> {
    let mut parts = text.trim().split('-');
    let (version, trace) = (hex::<u8>(parts.next()?, 2)?, hex::<u128>(parts.next()?, 32)?);
    let (span, flags) = (hex::<u64>(parts.next()?, 16)?, hex::<u8>(parts.next()?, 2)?);
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace.into(), span.into(), flags, true, TraceState::default());
    context.is_valid().then_some(context)
}

/// A number of `digits` hexadecimal digits in lower case.
fn hex<T: TryFrom<u128>>(text: &str, digits: usize) -> Option<T> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let well_formed = text.len() == digits && text.bytes().all(is_hex);
    u128::from_str_radix(text, 16).ok().filter(|_| well_formed)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_id_is_the_request_id_or_derived_from_it() {
        let id = "019ac3d4e5f67890a1b2c3d4e5f67890";
        assert_eq!(request_trace_id(id).to_string(), id);
        assert_eq!(request_trace_id("019ac3d4-e5f6-7890-a1b2-c3d4e5f67890").to_string(), id);
        assert_eq!(request_trace_id(&id.to_uppercase()).to_string(), id);
        let derived = ["order-17", "", &"0".repeat(32), &"+".repeat(32), &"9".repeat(36)];
        for id in derived {
            assert_ne!(request_trace_id(id), TraceId::INVALID);
            assert_eq!(request_trace_id(id), request_trace_id(id));
        }
        assert_ne!(request_trace_id("order-17"), request_trace_id("order-18"));
        // The first half of the SHA-256 of "abc".
        assert_eq!(request_trace_id("abc").to_string(), "ba7816bf8f01cfea414140de5dae2223");
    }

    #[test]
    fn traceparent_is_read_as_the_standard_says() {
        let sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = parse_traceparent(sent).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled() && context.is_remote());
        assert!(!parse_traceparent(&sent.replace("-01", "-00")).unwrap().is_sampled());
        assert!(parse_traceparent(&sent.replacen("00", "cc", 1)).is_some());
        assert!(parse_traceparent(&format!("{}-more", sent.replacen("00", "cc", 1))).is_some());
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(parse_traceparent(wrong).is_none(), "{wrong}");
        }
    }
}
