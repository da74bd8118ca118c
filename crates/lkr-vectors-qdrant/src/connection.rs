//! The connection to the server: channels, the API key, timeouts.

use std::{fmt, time::Duration};

use lkr_vectors::ErrorKind;
use qdrant_client::qdrant::{
    HealthCheckRequest, collections_client::CollectionsClient, points_client::PointsClient,
    qdrant_client::QdrantClient,
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use crate::{
    QdrantOptions,
    breaker::Breaker,
    error::{Delivery, Failure, InternalResult},
    options::without_credentials,
};

/// The name of the header with the API key.
const API_KEY: &str = "api-key";

/// How often an idle connection is checked, and how long the answer may take.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// How long a read whose connection was lost waits before each further attempt.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(20), Duration::from_millis(100)];

/// The longest time that a check of health takes.
const HEALTH_TIMEOUT: Duration = Duration::from_millis(900);

/// How long the server may answer nothing before a call that waits asks whether it still works.
const SILENCE: Duration = Duration::from_millis(300);

/// How long the answer to that question may take. With the silence before it, a call to a server that hangs fails within a second.
const PULSE_TIMEOUT: Duration = Duration::from_millis(600);

/// The first release with statistics of a part of the collection, and with matching by prefix.
const MIN_VERSION: (u64, u64) = (1, 19);

type Service = InterceptedService<Channel, ApiKey>;

/// A connection that is made when it is needed, and made again when it was lost.
pub(crate) struct Connection {
    channel: Channel,
    api_key: ApiKey,
    breaker: Breaker,
    /// Held while the server is asked whether it still works.
    pulse: Mutex<()>,
    pub(crate) read_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) write_retry_for: Duration,
}

impl Connection {
    pub(crate) fn new(options: &QdrantOptions) -> InternalResult<Self> {
        Ok(Self {
            channel: endpoint(options)?.connect_lazy(),
            api_key: ApiKey::new(options.api_key.as_deref())?,
            breaker: Breaker::new(options.failure_threshold, options.probe_interval),
            pulse: Mutex::default(),
            read_timeout: options.read_timeout,
            write_timeout: options.write_timeout,
            write_retry_for: options.write_retry_for,
        })
    }

    pub(crate) fn points(&self) -> PointsClient<Service> {
        PointsClient::new(self.service()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn collections(&self) -> CollectionsClient<Service> {
        CollectionsClient::new(self.service()).max_decoding_message_size(usize::MAX)
    }

    fn service(&self) -> Service {
        InterceptedService::new(self.channel.clone(), self.api_key.clone())
    }

    /// Whether the server answers, and is of a supported version.
    pub(crate) async fn check_health(&self) -> InternalResult<()> {
        let ask = || async { QdrantClient::new(self.service()).health_check(HealthCheckRequest {}).await };
        let reply = self.ask(HEALTH_TIMEOUT, ask).await?;
        if is_supported(&reply.version) {
            return Ok(());
        }
        let (major, minor) = MIN_VERSION;
        let message =
            format!("the server is Qdrant {}; {major}.{minor} or a later release is needed", reply.version);
        Err(Failure::new(ErrorKind::Internal, message))
    }

    /// A read.
    pub(crate) async fn read<T, F>(&self, ask: impl Fn() -> F) -> InternalResult<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.ask(self.read_timeout, ask).await
    }

    /// A call that changes nothing. If the connection is lost, it is repeated on a new one: that a server was started
    /// again is often noticed by the first call only, and the next may still be given to the lost connection.
    async fn ask<T, F>(&self, limit: Duration, ask: impl Fn() -> F) -> InternalResult<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut result = self.attempt(limit, ask()).await;
        for pause in PAUSES {
            match result {
                Err(failure) if failure.delivery == Delivery::Lost => sleep(pause).await,
                result => return result,
            }
            result = self.attempt(limit, ask()).await;
        }
        result
    }

    /// One call. It fails before its time limit if the server answers nothing else either: then it hangs, or its machine is
    /// gone. A server that answers may take its time.
    pub(crate) async fn attempt<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> InternalResult<T> {
        let permit = self.breaker.acquire()?;
        let result = tokio::select! {
            answer = timeout(limit, call) => match answer {
                Ok(result) => result.map(Response::into_inner).map_err(Failure::from),
                Err(_) => Err(Failure::timeout(limit)),
            },
            failure = self.silence() => Err(failure),
        };
        permit.record(result.as_ref().err());
        result
    }

    /// Completes once the server answers nothing, neither other calls nor the question whether it still works.
    async fn silence(&self) -> Failure {
        loop {
            let begun = Instant::now();
            sleep(SILENCE).await;
            // One of the calls that wait asks for all.
            let _asking = self.pulse.lock().await;
            if self.breaker.was_silent_since(begun) {
                return Failure::timeout(begun.elapsed());
            }
            if self.breaker.has_answered_since(begun) {
                continue;
            }
            let mut client = QdrantClient::new(self.service());
            // Boxed, because every call contains this future and few need it.
            let asked = Box::pin(timeout(PULSE_TIMEOUT, client.health_check(HealthCheckRequest {}))).await;
            match asked.map(|answer| answer.map_err(Failure::from)) {
                // What the connection lost, this call lost too.
                Ok(Err(failure)) if failure.is_disconnected() => {}
                Ok(_) => self.breaker.note_answer(),
                Err(_) if self.breaker.has_answered_since(begun) => {}
                Err(_) => {
                    let failure = Failure::timeout(begun.elapsed());
                    self.breaker.note_silence(&failure);
                    return failure;
                }
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("breaker", &self.breaker).finish_non_exhaustive()
    }
}

fn endpoint(options: &QdrantOptions) -> InternalResult<Endpoint> {
    let invalid = |error: tonic::transport::Error| {
        let url = without_credentials(&options.url);
        Failure::invalid(format!("{url} is no address of a Qdrant server: {error}"))
    };
    let endpoint = Endpoint::from_shared(options.url.clone())
        .map_err(invalid)?
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    match endpoint.uri().scheme_str() {
        Some("http") => Ok(endpoint),
        Some("https") => endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(invalid),
        _ => {
            let url = without_credentials(&options.url);
            Err(Failure::invalid(format!("{url} must begin with http:// or https://")))
        }
    }
}

/// Whether a version such as `1.19.2` or `1.20.0-dev` is late enough.
fn is_supported(version: &str) -> bool {
    let mut numbers =
        version.trim_start_matches('v').split(['.', '-']).map_while(|part| part.parse::<u64>().ok());
    let Some(major) = numbers.next() else { return false };
    (major, numbers.next().unwrap_or(0)) >= MIN_VERSION
}

/// Adds the API key to each request.
#[derive(Clone)]
pub(crate) struct ApiKey(Option<MetadataValue<Ascii>>);

impl ApiKey {
    fn new(key: Option<&str>) -> InternalResult<Self> {
        let Some(key) = key else { return Ok(Self(None)) };
        let mut value: MetadataValue<Ascii> = key
            .parse()
            .map_err(|_| Failure::invalid("the API key contains characters that a header cannot have"))?;
        value.set_sensitive(true);
        Ok(Self(Some(value)))
    }
}

impl Interceptor for ApiKey {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert(API_KEY, key.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_1_19_and_texts_that_are_no_version_are_refused() {
        for version in ["1.19.0", "1.19", "v1.20.3", "1.20.0-dev", "2.0.0", "10.1"] {
            assert!(is_supported(version), "{version}");
        }
        for version in ["1.18.9", "1.9.0", "0.19.0", "1", "", "dev", "one.two"] {
            assert!(!is_supported(version), "{version}");
        }
    }

    #[test]
    fn api_key_is_not_in_the_error_that_refuses_it() {
        let failure = ApiKey::new(Some("secret\nkey")).err().unwrap();
        assert_eq!(failure.kind, ErrorKind::Invalid);
        assert!(!failure.message.contains("secret"));
    }
}
