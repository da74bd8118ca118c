use lkr_auth::{ApiKey, NewKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::moment;

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyInput {
    /// What it is for, 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100)]
    pub(crate) name: String,
    /// How long it is good for, in seconds; for ever when it is not said, or as long as the key that it is made with.
    #[schema(minimum = 1)]
    pub(crate) expires_in: Option<u64>,
}

/// A key, without the key itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyItem {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// Null for one that does not expire.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
}

impl From<ApiKey> for KeyItem {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            created_at: moment(key.created_at),
            expires_at: key.expires_at.map(moment),
        }
    }
}

/// A key that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShownKey {
    #[serde(flatten)]
    item: KeyItem,
    /// To be sent as `Authorization: Bearer <key>`. It is shown this once.
    key: String,
}

impl From<NewKey> for ShownKey {
    fn from(made: NewKey) -> Self {
        Self { item: made.key.into(), key: made.secret }
    }
}

/// A page of keys, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    pub(crate) items: Vec<KeyItem>,
    /// Where the next page begins; null after the last.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// That a key is good no more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedKey {
    pub(crate) id: String,
    pub(crate) deleted: bool,
}
