use std::fmt;

use lkr_domain::hex;
use lkr_state::{Expect, StateStoreExt, Write};
use sha2::{Digest, Sha256};

use crate::{
    Account, Auth, Error, Result,
    records::{AccountV1, SessionV1, decode, encode, session_key},
};

/// The random bytes of a token: 256 bits.
pub(crate) const TOKEN_BYTES: usize = 32;

/// A new session. Its token is not available later.
#[derive(Clone)]
pub struct Login {
    /// The credential: 64 lower-case hexadecimal characters.
    pub token: String,
    /// The lifetime of the session.
    pub expires_in: std::time::Duration,
    /// The account of the session.
    pub account: Account,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Auth {
    /// Ends the session of `token`. Returns whether there was one.
    pub async fn logout(&self, token: &str) -> Result<bool> {
        let Some(hash) = token_hash(token) else { return Ok(false) };
        if self.live_session(&hash).await?.is_none() {
            return Ok(false);
        }
        // Whatever its version: that changes when the records of an outage are merged, and a session must not outlive its end.
        self.state.apply(vec![Write::delete(session_key(&hash), Expect::Any)]).await?;
        Ok(true)
    }

    /// The account of a valid session.
    pub(crate) async fn live_session(&self, token_hash: &str) -> Result<Option<AccountV1>> {
        let Some(record) = self.state.get(&session_key(token_hash)).await? else { return Ok(None) };
        let session: SessionV1 = decode(&record.value)?;
        if session.expires_at <= self.state.now() {
            return Ok(None);
        }
        let account = self.read(&session.username).await?.map(|(account, _)| account);
        let is_live = |account: &AccountV1| {
            account.id == session.account_id && account.epoch == session.epoch && !account.disabled
        };
        Ok(account.filter(is_live))
    }

    /// A new session of `account`, and the write that stores it.
    pub(crate) fn start_session(&self, account: &AccountV1) -> Result<(Login, Write)> {
        let token = new_token();
        let hash = token_hash(&token).ok_or_else(|| Error::internal("start session", "no token"))?;
        let session = SessionV1 {
            username: account.username.clone(),
            account_id: account.id.clone(),
            epoch: account.epoch,
            expires_at: self.state.now() + self.session_ttl,
        };
        let write = Write::put_for(session_key(&hash), Expect::Absent, encode(session)?, self.session_ttl);
        Ok((Login { token, expires_in: self.session_ttl, account: Account::from(account) }, write))
    }
}

/// A random token.
pub(crate) fn new_token() -> String {
    hex(&rand::random::<[u8; TOKEN_BYTES]>())
}

/// The SHA-256 of a token in hexadecimal; `None` if the text is not a token.
pub(crate) fn token_hash(token: &str) -> Option<String> {
    let is_token =
        token.len() == 2 * TOKEN_BYTES && token.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_token.then(|| hex(&Sha256::digest(token)))
}
