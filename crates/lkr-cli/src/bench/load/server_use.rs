//! What the server uses, from its metrics.

use crate::{http::Client, top::Samples};

/// What the process has used at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ServerUse {
    /// The processor time since its start, in seconds; `None` if it is not exposed.
    pub(super) cpu_seconds: Option<f64>,
    /// The resident memory in bytes; `None` if it is not exposed.
    pub(super) memory_bytes: Option<f64>,
}

impl ServerUse {
    /// Reads the metrics. A server that has none can be measured too.
    pub(super) fn read(client: &Client) -> Self {
        let samples = client.page("/metrics").ok().and_then(|text| Samples::parse(&text).ok());
        let value = |name| samples.as_ref().and_then(|samples| samples.value(name));
        Self {
            cpu_seconds: value("process_cpu_seconds_total"),
            memory_bytes: value("process_resident_memory_bytes"),
        }
    }
}
