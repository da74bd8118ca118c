use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Filterable values of a point by key, such as `category`, `source`, `language`, `metadata.kind`. Points can be
/// filtered by any key.
///
/// The points of a document share their tags, so a clone is cheap; values may be long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Tags(Arc<BTreeMap<String, String>>);

impl Tags {
    /// No tags.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether both are clones of the same tags. Equal tags may have been made twice.
    #[must_use]
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Tags {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A change copies tags that are shared.
impl DerefMut for Tags {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl From<BTreeMap<String, String>> for Tags {
    fn from(tags: BTreeMap<String, String>) -> Self {
        Self(Arc::new(tags))
    }
}

impl From<Tags> for BTreeMap<String, String> {
    fn from(tags: Tags) -> Self {
        Arc::unwrap_or_clone(tags.0)
    }
}

impl<const N: usize> From<[(String, String); N]> for Tags {
    fn from(tags: [(String, String); N]) -> Self {
        Self::from(BTreeMap::from(tags))
    }
}

impl FromIterator<(String, String)> for Tags {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(tags: I) -> Self {
        Self::from(tags.into_iter().collect::<BTreeMap<_, _>>())
    }
}
