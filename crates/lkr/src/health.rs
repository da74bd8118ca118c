/// How the parts of a knowledge base are: each well, or why it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The points.
    pub vectors: Result<(), String>,
    /// The records.
    pub state: Result<(), String>,
    /// The tasks.
    pub queue: Result<(), String>,
    /// The texts.
    pub blobs: Result<(), String>,
    /// The embedding model; without one, searches go by words alone.
    pub embedder: Result<(), String>,
}
