//! Models on other machines, as entries of the settings name them.

use std::{num::NonZeroUsize, time::Duration};

use lkr::ports::models::{Error, ErrorKind, Result};
use lkr_models_remote::RemoteOptions;
use lkr_settings::ModelEntry;

/// What failed where an entry's model cannot be had.
pub(crate) const OPERATION: &str = "settings of the model";

/// How many calls of a model run at once: as many as a server of one's own answers at once by default.
pub(crate) const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

/// What was built from settings and is kept while they stay: an error is told as its kind and reason.
pub(crate) type Built<T> = Result<T, (ErrorKind, String)>;

/// Keeps what was built.
pub(crate) fn kept<T>(built: Result<T>) -> Built<T> {
    built.map_err(|error| (error.kind(), error.reason()))
}

/// Tells what was kept.
pub(crate) fn told<T: Clone>(built: &Built<T>) -> Result<T> {
    built.clone().map_err(|(kind, reason)| Error::new(kind, OPERATION, reason))
}

/// How the model of an entry is reached.
///
/// # Errors
/// `Config` where its key cannot be opened.
pub(crate) fn remote_options(entry: &ModelEntry) -> Result<RemoteOptions> {
    let unreadable = |error| Error::new(ErrorKind::Config, OPERATION, error);
    Ok(RemoteOptions {
        base_url: entry.base_url.clone(),
        model: entry.model.clone(),
        api_key: entry.api_key.secret().map_err(unreadable)?.cloned(),
        timeout: Duration::from_secs(entry.timeout_s.into()),
    })
}
