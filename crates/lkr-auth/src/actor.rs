//! The author of a change.

/// The author of a change, and its request.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The name of an account, or another word if the actor is not an account.
    pub actor: &'a str,
    /// The id of the account, if the actor is one. A later account of the same name does not have the same rights.
    pub account_id: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a str,
}

impl<'a> Actor<'a> {
    /// The program itself or its operator.
    #[must_use]
    pub const fn program(word: &'a str) -> Self {
        Self { actor: word, account_id: None, request_id: "" }
    }
}
