/// The health of each part of a knowledge base: `Ok`, or the reason why it does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The vector store.
    pub vectors: Result<(), String>,
    /// The state store.
    pub state: Result<(), String>,
    /// The task queue.
    pub queue: Result<(), String>,
    /// The blob store.
    pub blobs: Result<(), String>,
    /// The embedding model; without one, searches use keywords only.
    pub embedder: Result<(), String>,
}
