//! Starts logging and tracing.

mod json;
mod writer;

use std::{
    env::VarError,
    io::{IsTerminal as _, stderr},
};

use anyhow::{Context as _, Result};
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
pub(crate) use writer::LogWriter;

/// What logging needs of the process.
pub(crate) struct StartedLogging {
    /// Counts repeated lines.
    pub(crate) limiter: LogLimiter,
    /// Writes the lines.
    pub(crate) writer: LogWriter,
    /// The spans to send to a collector; `None` without one.
    pub(crate) spans: Option<SpanReceiver>,
}

/// Logs to stderr at the level that `RUST_LOG` names, `info` by default, and collects spans if there is a collector.
///
/// # Errors
/// That the system has no thread left.
pub(crate) fn start_logging(config: &Config) -> Result<StartedLogging> {
    let (filter, refused) = filter();
    let limiter = LogLimiter::default();
    let writer = LogWriter::start(stderr()).context("cannot start a thread that writes log lines")?;
    let lines = lines(config.log_format, writer.clone()).with_filter(limiter.clone()).with_filter(filter);
    let (traces, spans) = config.otlp_endpoint.as_ref().map(|_| trace_layer()).unzip();
    tracing_subscriber::registry().with(lines).with(traces).init();
    if let Some(reason) = refused {
        tracing::warn!("RUST_LOG is not used: {reason}");
    }
    Ok(StartedLogging { limiter, writer, spans })
}

/// What is logged, and why `RUST_LOG` does not say so, if it is set and cannot be read.
fn filter() -> (EnvFilter, Option<String>) {
    let usual = || EnvFilter::new("info,actix_http=off,actix_server=warn");
    match std::env::var(EnvFilter::DEFAULT_ENV) {
        Err(VarError::NotPresent) => (usual(), None),
        Err(error) => (usual(), Some(error.to_string())),
        Ok(directives) if directives.trim().is_empty() => (usual(), None),
        Ok(directives) => match EnvFilter::try_new(&directives) {
            Ok(filter) => (filter, None),
            Err(error) => (usual(), Some(format!("{directives}: {error}"))),
        },
    }
}

/// The layer that writes lines of a format.
fn lines<S>(format: LogFormat, writer: LogWriter) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    match format {
        LogFormat::Json => Box::new(JsonLines::new(writer)),
        LogFormat::Text => {
            let colours = stderr().is_terminal();
            Box::new(tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(writer))
        }
    }
}
