//! Starts logging and tracing.

mod json;

use std::io::{IsTerminal as _, stderr};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, layer::SubscriberExt as _, registry::LookupSpan, util::SubscriberInitExt as _,
};

use crate::{
    config::{Config, LogFormat},
    log_limiter::LogLimiter,
    traces::{SpanReceiver, trace_layer},
};
use json::JsonLines;

/// What logging needs of the process.
pub(crate) struct StartedLogging {
    /// Counts repeated lines.
    pub(crate) limiter: LogLimiter,
    /// The spans to send to a collector; `None` without one.
    pub(crate) spans: Option<SpanReceiver>,
}

/// Logs to stderr at the level that `RUST_LOG` names, `info` by default, and collects spans if there is a collector.
pub(crate) fn start_logging(config: &Config) -> StartedLogging {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,actix_http=off,actix_server=warn"));
    let limiter = LogLimiter::default();
    let lines = lines(config.log_format).with_filter(limiter.clone()).with_filter(filter);
    let (traces, spans) = config.otlp_endpoint.as_ref().map(|_| trace_layer()).unzip();
    tracing_subscriber::registry().with(lines).with(traces).init();
    StartedLogging { limiter, spans }
}

/// The layer that writes lines of a format.
fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    match format {
        LogFormat::Json => Box::new(JsonLines::new(stderr)),
        LogFormat::Text => {
            let colours = stderr().is_terminal();
            Box::new(tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(stderr))
        }
    }
}
