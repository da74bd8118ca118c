use std::fmt::Display;
use std::path::Path;

use lkr_models::{Error, ErrorKind};

/// The model folder is not usable; `what` names the reason and the wrong value.
pub(crate) fn config(what: impl Display) -> Error {
    Error::new(ErrorKind::Config, "cannot load the model", what.to_string())
}

/// A file of the model folder is not usable.
pub(crate) fn file(path: &Path, why: impl Display) -> Error {
    config(format_args!("{}: {why}", path.display()))
}

/// What a model must be able to encode when it is opened. Some damage shows only in results.
pub(crate) const TRIAL: &str = "A short text, to try the model.";

/// The model in the folder cannot encode [`TRIAL`].
pub(crate) fn trial(dir: &Path, why: &Error) -> Error {
    file(dir, format_args!("it cannot encode a short text: {}", why.reason()))
}

/// The engine failed for a valid input.
pub(crate) fn internal(what: impl Display) -> Error {
    Error::new(ErrorKind::Internal, "cannot embed", what.to_string())
}

/// The engine cannot run at present.
pub(crate) fn unavailable(what: impl Display) -> Error {
    Error::new(ErrorKind::Unavailable, "cannot embed", what.to_string())
}
