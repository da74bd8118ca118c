//! Exit codes, and what to do about an error.

use std::{fmt, io, process::ExitCode};

use crate::{error_line::error_line, http::ApiError};

/// How a command ended. The numbers are the exit codes; 2 is also what the parser of arguments uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is done.
    Done = 0,
    /// Something else failed.
    Failed = 1,
    /// The arguments are wrong.
    Usage = 2,
    /// The server refused: no login, no right, or a state that does not allow it.
    Refused = 3,
    /// What the command names does not exist.
    NotFound = 4,
    /// A part of the work failed; the rest is done.
    Partly = 5,
    /// The server cannot be reached, or is overloaded.
    Unreachable = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What the parser of arguments cannot know: they do not fit together, or name what is not there.
#[derive(Debug)]
struct Mistake {
    message: String,
    exit: Exit,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

/// An error of wrong arguments.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Mistake { message: message.into(), exit: Exit::Usage }.into()
}

/// An error of a name of nothing.
pub(crate) fn not_found(message: impl Into<String>) -> anyhow::Error {
    Mistake { message: message.into(), exit: Exit::NotFound }.into()
}

/// An error of a missing login.
pub(crate) fn no_login(address: &str) -> anyhow::Error {
    let message =
        format!("this command needs a login: run 'lkr login {address}', or give --token or --password-file");
    Mistake { message, exit: Exit::Refused }.into()
}

/// An error of an address at which something else answers.
pub(crate) fn no_server(address: &str) -> anyhow::Error {
    let message = format!("no lkr server answers at {address}");
    Mistake { message, exit: Exit::Unreachable }.into()
}

/// The exit code of an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(refusal) = error.downcast_ref::<ApiError>() {
        return match refusal.code {
            Some(1004) => Exit::NotFound,
            Some(1001) => Exit::Usage,
            Some(1010) | None => Exit::Unreachable,
            Some(1003 | 1005..=1009) => Exit::Refused,
            Some(_) => Exit::Failed,
        };
    }
    if let Some(Mistake { exit, .. }) = error.downcast_ref() {
        return *exit;
    }
    if is_unreachable(error) {
        Exit::Unreachable
    } else if names_no_file(error) {
        Exit::NotFound
    } else {
        Exit::Failed
    }
}

/// Why a command failed, in one line: what the server says, without the request that it answers, or the error and its causes.
pub(crate) fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref::<ApiError>() {
        Some(ApiError { code: Some(code), message, .. }) => format!("{message} (error {code})"),
        _ => error_line(error),
    }
}

/// What to do about an error; `None` if its message says it all.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    let Some(refusal) = error.downcast_ref::<ApiError>() else {
        let advice = "is a server running there? 'lkr serve' starts one; --server, LKR_URL or 'lkr login' name another, \
                      and --data-dir works on a folder without one";
        return is_unreachable(error).then(|| advice.to_owned());
    };
    match refusal.code? {
        1005 => Some("log in with 'lkr login', or give --token or --password-file".to_owned()),
        1008 => Some("run 'lkr login' to set a password of your own".to_owned()),
        1010 => Some(match refusal.retry_after {
            Some(pause) => format!("try again in {} s", pause.as_secs()),
            None => "try again later".to_owned(),
        }),
        _ => None,
    }
}

/// Whether a file or folder does not exist.
fn names_no_file(error: &anyhow::Error) -> bool {
    let is_missing = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    };
    error.chain().any(is_missing)
}

/// Whether no response came from the server.
fn is_unreachable(error: &anyhow::Error) -> bool {
    use ureq::Error;
    matches!(
        error.downcast_ref::<Error>(),
        Some(
            Error::Io(_)
                | Error::Timeout(_)
                | Error::HostNotFound
                | Error::ConnectionFailed
                | Error::ConnectProxyFailed(_)
                | Error::Protocol(_)
                | Error::Tls(_)
                | Error::Rustls(_)
        )
    )
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    fn refusal(code: Option<u64>) -> anyhow::Error {
        let error = ApiError { status: 400, code, message: "no".to_owned(), retry_after: None };
        Err::<(), _>(anyhow::Error::from(error)).context("GET /").unwrap_err()
    }

    #[test]
    fn exit_code_follows_the_cause() {
        let cases = [(1004, Exit::NotFound), (1001, Exit::Usage), (1006, Exit::Refused)];
        for (code, exit) in cases.into_iter().chain([(1010, Exit::Unreachable), (2000, Exit::Failed)]) {
            assert_eq!(exit_of(&refusal(Some(code))), exit, "{code}");
        }
        let io = ureq::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        let unreachable = Err::<(), _>(anyhow::Error::from(io)).context("GET /").unwrap_err();
        assert_eq!(exit_of(&unreachable), Exit::Unreachable);
        let refused_by_proxy = ureq::Error::ConnectProxyFailed("502 Bad Gateway".to_owned());
        assert_eq!(exit_of(&refused_by_proxy.into()), Exit::Unreachable);
        assert_eq!(exit_of(&usage("x").context("y")), Exit::Usage);
        assert_eq!(exit_of(&not_found("x")), Exit::NotFound);
        assert_eq!(exit_of(&no_login("http://h")), Exit::Refused);
        assert_eq!(exit_of(&no_server("http://h")), Exit::Unreachable);
        let absent = std::fs::read("no/such/file").context("read no/such/file").unwrap_err();
        assert_eq!(exit_of(&absent), Exit::NotFound);
        assert_eq!(exit_of(&anyhow!("x")), Exit::Failed);
    }

    #[test]
    fn reason_is_what_the_server_says() {
        assert_eq!(reason(&refusal(Some(1004))), "no (error 1004)");
        assert_eq!(reason(&refusal(None)), "GET /: no lkr server answers there (HTTP 400)");
        assert_eq!(reason(&anyhow!("x").context("y")), "y: x");
    }

    #[test]
    fn advice_names_the_next_command() {
        assert!(advice(&refusal(Some(1005))).unwrap().contains("lkr login"));
        assert!(advice(&refusal(Some(1010))).unwrap().contains("try again"));
        assert_eq!(advice(&refusal(Some(1004))), None);
        assert_eq!(advice(&anyhow!("x")), None);
    }
}
