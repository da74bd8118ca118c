use std::fmt;

use crate::{
    Account, Auth, Credential, FIRST_ADMIN, Identity, Result, Role,
    session::{new_token, token_hash},
};

/// The accounts that are read at once in search of an admin.
const PAGE: usize = 100;

/// A credential of the process that has the store open, for a program that works on its own data folder. It is in memory
/// only, so it ends with the process.
///
/// It acts as the account [`FIRST_ADMIN`], or as another enabled admin if that one is not, and needs no change of password
/// first: a process that can open the store can also reset that password.
#[derive(Clone)]
pub struct OperatorToken(String);

impl OperatorToken {
    /// A random token.
    #[must_use]
    pub fn generate() -> Self {
        Self(new_token())
    }

    /// The token to send as a bearer.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> Option<String> {
        token_hash(&self.0)
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OperatorToken").finish_non_exhaustive()
    }
}

impl Auth {
    /// The operator, if the hash is that of its token.
    pub(crate) async fn by_operator(&self, hash: &str) -> Result<Option<Identity>> {
        if self.operator_hash.as_deref() != Some(hash) {
            return Ok(None);
        }
        let admin = self.any_admin().await?;
        Ok(admin.map(|account| Identity {
            account: Account { must_change_password: false, ..account },
            credential: Credential::Session,
        }))
    }

    /// The first admin, or another enabled admin; `None` if there is none.
    async fn any_admin(&self) -> Result<Option<Account>> {
        let is_admin = |account: &Account| account.role == Role::Admin && !account.disabled;
        if let Some(first) = self.account(FIRST_ADMIN).await?.filter(is_admin) {
            return Ok(Some(first));
        }
        let mut after = None;
        loop {
            let page = self.accounts(after.as_deref(), PAGE).await?;
            if let Some(admin) = page.items.into_iter().find(is_admin) {
                return Ok(Some(admin));
            }
            let Some(next) = page.next else { return Ok(None) };
            after = Some(next);
        }
    }
}
