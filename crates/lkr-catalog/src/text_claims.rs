//! The texts that are becoming documents, in whichever process: of near duplicates that arrive at once, one becomes a
//! document. The claims of a space are one record, so that taking one sees all others.

use lkr_domain::{Fingerprint, SpaceName, TaskId};
use lkr_state::{Expect, Record, StateStoreExt, Write};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Catalog, Error, Result, key};

/// A task's claim on a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTextClaim {
    /// The task.
    pub task_id: TaskId,
    /// The process that works on it.
    pub process: Uuid,
    /// The SimHash of the text.
    pub simhash: u64,
}

/// The claims on the texts of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextClaims {
    /// The claims, the oldest first.
    pub claims: Vec<StoredTextClaim>,
    version: Option<u64>,
}

impl TextClaims {
    fn read(record: Option<&Record>) -> Result<Self> {
        let claims = match record {
            Some(record) => serde_json::from_slice(&record.value)
                .map_err(|e| Error::corrupt("read claims on texts", e))?,
            None => Vec::new(),
        };
        Ok(Self { claims, version: record.map(|record| record.version) })
    }
}

impl Catalog {
    /// The claims on the texts of a space.
    ///
    /// # Errors
    /// Those of the state store; `Corrupt` if the record cannot be read.
    pub async fn text_claims(&self, space: &SpaceName) -> Result<TextClaims> {
        TextClaims::read(self.state.get(&key::text_claims(space)).await?.as_ref())
    }

    /// Replaces the claims on the texts of a space.
    ///
    /// # Errors
    /// `Conflict` if they changed since they were read.
    pub async fn replace_text_claims(
        &self,
        space: &SpaceName,
        before: &TextClaims,
        claims: &[StoredTextClaim],
    ) -> Result<()> {
        let expect = before.version.map_or(Expect::Absent, Expect::Version);
        let key = key::text_claims(space);
        let write = if claims.is_empty() {
            Write::delete(key, expect)
        } else {
            let record =
                serde_json::to_vec(claims).map_err(|e| Error::corrupt("write claims on texts", e))?;
            Write::put(key, expect, record)
        };
        Ok(self.state.apply(vec![write]).await?)
    }
}

/// Whether a record of claims can be read.
pub(crate) fn is_readable(record: &Record) -> bool {
    TextClaims::read(Some(record)).is_ok()
}

/// Whether two SimHashes differ in at most `threshold` bits.
#[must_use]
pub const fn is_near(one: u64, other: u64, threshold: u32) -> bool {
    (one ^ other).count_ones() <= threshold
}

impl StoredTextClaim {
    /// The claim of a task of this process.
    #[must_use]
    pub const fn new(task_id: TaskId, process: Uuid, fingerprint: &Fingerprint) -> Self {
        Self { task_id, process, simhash: fingerprint.simhash }
    }
}
