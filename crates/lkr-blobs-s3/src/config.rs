use std::{path::PathBuf, time::Duration};

use lkr_sealing::Secret;
use url::Url;

use crate::S3Location;

/// Where an object store is, and how it is reached.
#[derive(Debug, Clone)]
pub struct S3Config {
    /// The bucket, and the prefix of all keys.
    pub location: S3Location,
    /// The address of a store that is not Amazon's, with `http:` or `https:`. The bucket is the first part of the path then
    /// (path style). Without it the store is Amazon S3 in `region`.
    pub endpoint: Option<Url>,
    /// The region that requests are signed for. Stores other than Amazon's often accept any; `us-east-1` is usual.
    pub region: String,
    /// The id of the access key.
    pub access_key_id: String,
    /// The secret of the access key. Neither `Debug` nor an error shows it.
    pub secret_access_key: Secret,
    /// How long a request may make no progress: no byte of it is taken, its response does not begin, or the next part of the
    /// response does not come. It does not bound the time of a transfer that goes on. Connecting takes three seconds at most,
    /// or this if it is shorter.
    pub request_timeout: Duration,
    /// No operation is tried again after this time. So an operation on a store that is away fails after this and one
    /// `request_timeout` at the latest, and after this time alone if the store refuses connections.
    pub retry_budget: Duration,
    /// Certificates in PEM that are trusted beside Mozilla's.
    pub ca_file: Option<PathBuf>,
}

impl S3Config {
    /// The default of [`request_timeout`](Self::request_timeout).
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

    /// The default of [`retry_budget`](Self::retry_budget).
    pub const RETRY_BUDGET: Duration = Duration::from_secs(5);

    /// Amazon S3 in `region`, with the default times.
    pub fn new(
        location: S3Location,
        region: impl Into<String>,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<Secret>,
    ) -> Self {
        Self {
            location,
            endpoint: None,
            region: region.into(),
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            request_timeout: Self::REQUEST_TIMEOUT,
            retry_budget: Self::RETRY_BUDGET,
            ca_file: None,
        }
    }
}
