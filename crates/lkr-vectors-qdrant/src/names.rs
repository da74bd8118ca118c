use lkr_vectors::Collection;

/// The names of collections and aliases at the server.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The name at the server.
    pub(crate) fn full(&self, collection: &Collection) -> String {
        format!("{}{collection}", self.prefix)
    }

    /// The name without the prefix; `None` if it does not begin with it.
    pub(crate) fn strip(&self, full: &str) -> Option<Collection> {
        Collection::new(full.strip_prefix(self.prefix.as_str())?)
    }
}
