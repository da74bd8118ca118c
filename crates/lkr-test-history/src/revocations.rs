//! Whether what was revoked stayed revoked, in every process.

mod facts;

use std::fmt;

use crate::{Answer, Finding, FindingKind, history::Seconds};
use facts::{Facts, Revocation};

/// A request about an account, when it began and ended, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOperation {
    /// The process that was asked. One that is started again keeps its number, because it keeps its data folder.
    pub process: u32,
    /// The account.
    pub account: String,
    /// When the request was sent, in nanoseconds.
    pub start: u64,
    /// When the answer was there; `None` if none came.
    pub end: Option<u64>,
    /// The request.
    pub call: AccountCall,
    /// Whether it was accepted.
    pub answer: Answer,
}

/// A request about an account. Sessions, keys and passwords have names of their own, which are never used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountCall {
    /// Logs in with a password; the session if that was accepted.
    LogIn {
        /// The password.
        password: u64,
        /// The session.
        session: Option<u64>,
    },
    /// Uses a session.
    UseSession(u64),
    /// Uses an API key.
    UseKey(u64),
    /// Ends a session with itself.
    LogOut(u64),
    /// Changes the password, which ends all sessions, and begins a new one.
    ChangePassword {
        /// The new password.
        password: u64,
        /// The new session, if that was accepted.
        session: Option<u64>,
    },
    /// An admin disables the account, which ends its sessions. Its password and keys are refused while it lasts.
    Disable,
    /// An admin enables the account.
    Enable,
    /// Makes an API key.
    CreateKey(u64),
    /// Deletes an API key.
    DeleteKey(u64),
}

/// A time in which a process could not reach the store of accounts, and went on from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away {
    /// The process.
    pub process: u32,
    /// Not after it began, in nanoseconds.
    pub from: u64,
    /// Not before it ended; `None` if it lasts.
    pub until: Option<u64>,
}

impl Away {
    /// Whether the process was away at some moment of an operation.
    fn meets(&self, operation: &AccountOperation) -> bool {
        self.process == operation.process
            && operation.end.is_none_or(|end| self.from <= end)
            && self.until.is_none_or(|until| operation.start <= until)
    }
}

/// Checks that nothing is accepted whose revocation was acknowledged before, and that no session is refused which nothing revoked.
///
/// A revocation holds at once in the process that acknowledged it. It holds in the others from then on too, or, if that process
/// was away, from its return on; and not in a process that is away itself.
#[must_use]
pub fn check_revocations(history: &[AccountOperation], away: &[Away]) -> Vec<Finding> {
    let facts = Facts::new(history, away);
    let mut findings = Vec::new();
    for operation in history {
        let found = match operation.answer {
            Answer::Done => facts.broken_revocation(facts.fact(operation)).map(|by| accepted(operation, &by)),
            Answer::Refused => facts.is_valid(facts.fact(operation)).then(|| refused(operation)),
            Answer::Unknown => None,
        };
        findings.extend(found);
    }
    findings
}

fn accepted(operation: &AccountOperation, by: &Revocation<'_>) -> Finding {
    let detail = format!(
        "revoked and accepted again\n    {}\n    which holds there since {}\n    {operation}",
        by.operation,
        Seconds(by.since)
    );
    Finding::new(FindingKind::RevokedAccepted, detail)
}

fn refused(operation: &AccountOperation) -> Finding {
    Finding::new(FindingKind::ValidRefused, format!("refused although nothing revoked it\n    {operation}"))
}

impl fmt::Display for AccountOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} {} [{}, ", self.process, self.account, Seconds(self.start))?;
        match self.end {
            Some(end) => write!(f, "{}]", Seconds(end))?,
            None => write!(f, "?]")?,
        }
        write!(f, " {:?}: {:?}", self.call, self.answer)
    }
}
