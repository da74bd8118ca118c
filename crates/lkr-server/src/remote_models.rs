//! What the models of the settings' entries have in common.

use std::{num::NonZeroUsize, time::Duration};

use lkr::ports::models::{Error, ErrorKind, Result};
use lkr_models_remote::RemoteOptions;
use lkr_settings::ModelEntry;

/// The operation in errors about an entry.
pub(crate) const OPERATION: &str = "settings of the model";

/// How many calls of a model run at once: the default parallelism of a self-hosted model server.
pub(crate) const MAX_CONCURRENT_CALLS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

/// A result that is cached until the settings change. It holds an error's kind and reason, since errors are not `Clone`.
pub(crate) type CachedResult<T> = Result<T, (ErrorKind, String)>;

/// Makes a result cacheable.
pub(crate) fn cacheable<T>(result: Result<T>) -> CachedResult<T> {
    result.map_err(|error| (error.kind(), error.reason()))
}

/// The result that was cached.
pub(crate) fn from_cache<T: Clone>(cached: &CachedResult<T>) -> Result<T> {
    cached.clone().map_err(|(kind, reason)| Error::new(kind, OPERATION, reason))
}

/// How to reach the model of an entry.
///
/// # Errors
/// `Config` if its API key cannot be unsealed.
pub(crate) fn remote_options(entry: &ModelEntry) -> Result<RemoteOptions> {
    let unreadable = |error| Error::new(ErrorKind::Config, OPERATION, error);
    Ok(RemoteOptions {
        base_url: entry.base_url.clone(),
        model: entry.model.clone(),
        api_key: entry.api_key.secret().map_err(unreadable)?.cloned(),
        timeout: Duration::from_secs(entry.timeout_s.into()),
    })
}
