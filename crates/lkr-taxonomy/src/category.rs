use serde::Serialize;

/// A category that a document can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Category {
    /// 1 to 64 of `a-z 0-9 - _ .`, unique in its taxonomy.
    pub id: String,
    /// 1 to 64 characters, unique in its taxonomy without regard to case; what a document carries.
    pub name: String,
    /// What such documents are about: 1 to 2,000 characters.
    pub description: String,
    /// Words that such documents use: at most 50 of 1 to 64 characters.
    pub keywords: Vec<String>,
    /// The id of the category that this one is part of.
    pub parent: Option<String>,
}
