//! The queue of ended spans.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most spans that wait to be sent: those of a few hundred requests. Chosen, not measured.
const MAX_WAITING: usize = 8_192;

/// Takes spans that have ended. While it is full, spans are dropped and counted; nothing ever waits for it.
#[derive(Debug)]
pub(super) struct SpanQueue {
    sender: Sender<SpanData>,
    dropped: Arc<AtomicU64>,
}

/// The other end of the queue of spans.
#[derive(Debug)]
pub(crate) struct SpanReceiver {
    pub(super) spans: Receiver<SpanData>,
    dropped: Arc<AtomicU64>,
}

/// A queue of spans.
pub(super) fn span_queue() -> (SpanQueue, SpanReceiver) {
    let (sender, spans) = channel(MAX_WAITING);
    let dropped = Arc::new(AtomicU64::new(0));
    (SpanQueue { sender, dropped: Arc::clone(&dropped) }, SpanReceiver { spans, dropped })
}

impl SpanReceiver {
    /// How many spans were dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spans are flushed by the exporter at its shutdown.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
