//! What is certain of credentials: since when they are valid, and since when they are revoked.

use std::collections::BTreeMap;

use super::{AccountCall, AccountOperation, Away};
use crate::Answer;

/// An operation, and when others know of it.
#[derive(Clone, Copy)]
pub(super) struct Fact<'a> {
    pub(super) operation: &'a AccountOperation,
    /// Whether its process was away meanwhile.
    is_away: bool,
    /// Since when every process that is not away knows what it did: its end, or the return of its process. `None` if that is
    /// not certain.
    known: Option<u64>,
}

/// What matters to the credentials of one account.
#[derive(Default)]
struct Account<'a> {
    /// What ends sessions, keys or passwords, or may have done so.
    ending: Vec<Fact<'a>>,
    /// What enabled the account, or may have done so.
    enabling: Vec<Fact<'a>>,
    /// The operation that each session began with.
    beginnings: BTreeMap<u64, Fact<'a>>,
}

/// The facts by account.
pub(super) struct Facts<'a> {
    accounts: BTreeMap<&'a str, Account<'a>>,
    away: &'a [Away],
}

/// A revocation, and since when it holds in a process.
pub(super) struct Revocation<'a> {
    pub(super) operation: &'a AccountOperation,
    pub(super) since: u64,
}

impl<'a> Facts<'a> {
    pub(super) fn new(history: &'a [AccountOperation], away: &'a [Away]) -> Self {
        let mut facts = Self { accounts: BTreeMap::new(), away };
        for operation in history.iter().filter(|operation| operation.answer != Answer::Refused) {
            let fact = facts.fact(operation);
            let account = facts.accounts.entry(&operation.account).or_default();
            match operation.call {
                AccountCall::Disable | AccountCall::LogOut(_) | AccountCall::DeleteKey(_) => {
                    account.ending.push(fact);
                }
                AccountCall::Enable => account.enabling.push(fact),
                AccountCall::ChangePassword { session, .. } => {
                    account.ending.push(fact);
                    account.beginnings.extend(session.map(|session| (session, fact)));
                }
                AccountCall::LogIn { session, .. } => {
                    account.beginnings.extend(session.map(|session| (session, fact)));
                }
                AccountCall::UseSession(_) | AccountCall::UseKey(_) | AccountCall::CreateKey(_) => {}
            }
        }
        facts
    }

    pub(super) fn fact(&self, operation: &'a AccountOperation) -> Fact<'a> {
        let meeting = self.away.iter().filter(|away| away.meets(operation));
        let returns: Vec<Option<u64>> = meeting.map(|away| away.until).collect();
        let known = operation.end.and_then(|end| {
            returns.iter().try_fold(end, |latest, until| until.map(|until| latest.max(until)))
        });
        Fact { operation, is_away: !returns.is_empty(), known }
    }

    /// The revocation that held in the process when an accepted operation began.
    pub(super) fn broken_revocation(&self, used: Fact<'a>) -> Option<Revocation<'a>> {
        let account = self.accounts.get(used.operation.account.as_str())?;
        let acknowledged = account.ending.iter().filter(|ending| ending.operation.answer == Answer::Done);
        let mut holding = acknowledged.filter_map(|ending| {
            let is_own = ending.operation.process == used.operation.process;
            // A process that is away may not know what the others revoked.
            let since = if is_own { ending.operation.end } else { ending.known };
            let since = since.filter(|since| *since < used.operation.start && (is_own || !used.is_away))?;
            Some((ending, since))
        });
        let (revoking, since) = holding.find(|(ending, _)| account.revokes(ending, used.operation))?;
        Some(Revocation { operation: revoking.operation, since })
    }

    /// Whether the use of a session had to be accepted.
    pub(super) fn is_valid(&self, used: Fact<'a>) -> bool {
        let AccountCall::UseSession(session) = used.operation.call else { return false };
        let Some(account) = self.accounts.get(used.operation.account.as_str()) else { return false };
        let Some(begun) = account.beginnings.get(&session) else { return false };
        // What began while its process was away may be overruled when it is merged.
        let is_known = !begun.is_away && begun.operation.end.is_some_and(|end| end < used.operation.start);
        let may_have_ended = |ending: &Fact<'_>| {
            let is_about_it = match ending.operation.call {
                AccountCall::LogOut(ended) => ended == session,
                AccountCall::DeleteKey(_) => false,
                _ => !std::ptr::eq(ending.operation, begun.operation),
            };
            is_about_it
                && used.operation.end.is_none_or(|end| ending.operation.start <= end)
                && ending.known.is_none_or(|known| known >= begun.operation.start)
        };
        is_known && !used.is_away && !account.ending.iter().any(may_have_ended)
    }
}

impl Account<'_> {
    /// Whether an operation that came before the use ended the credential of the use.
    fn revokes(&self, revoking: &Fact<'_>, used: &AccountOperation) -> bool {
        match (&revoking.operation.call, &used.call) {
            (AccountCall::LogOut(ended), AccountCall::UseSession(session) | AccountCall::LogOut(session)) => {
                ended == session
            }
            (AccountCall::DeleteKey(deleted), AccountCall::UseKey(key)) => deleted == key,
            (AccountCall::ChangePassword { password, .. }, AccountCall::LogIn { password: used, .. }) => {
                used < password
            }
            (AccountCall::ChangePassword { .. }, AccountCall::UseSession(session)) => {
                self.began_before(*session, revoking)
            }
            (AccountCall::Disable, AccountCall::UseSession(session)) => {
                self.began_before(*session, revoking) || self.is_disabled(revoking, used)
            }
            (AccountCall::Disable, AccountCall::UseKey(_) | AccountCall::LogIn { .. }) => {
                self.is_disabled(revoking, used)
            }
            _ => false,
        }
    }

    /// Whether a session had certainly begun, for every process, before an operation did.
    fn began_before(&self, session: u64, fact: &Fact<'_>) -> bool {
        let known = self.beginnings.get(&session).and_then(|begun| begun.known);
        known.is_some_and(|known| known < fact.operation.start)
    }

    /// Whether the account was still disabled, because nothing enabled it that may have come later.
    fn is_disabled(&self, disabling: &Fact<'_>, used: &AccountOperation) -> bool {
        !self.enabling.iter().any(|enabling| {
            used.end.is_none_or(|end| enabling.operation.start <= end)
                && enabling.known.is_none_or(|known| known >= disabling.operation.start)
        })
    }
}
