use serde::Serialize;

/// A category that a document can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Category {
    /// 1 to 64 characters of `a-z 0-9 - _ .`, unique in the taxonomy.
    pub id: String,
    /// 1 to 64 characters, unique in the taxonomy ignoring case. Documents store the name, not the id.
    pub name: String,
    /// What documents of the category are about: 1 to 2,000 characters.
    pub description: String,
    /// Typical words of such documents: at most 50, each 1 to 64 characters.
    pub keywords: Vec<String>,
    /// The id of the parent category.
    pub parent: Option<String>,
}
