//! The models that `cargo xtask model NAME` fetches.

/// A published model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    /// The name of its folder.
    pub(crate) name: &'static str,
    /// Its repository: the owner and the name there.
    pub(crate) repository: &'static str,
    /// The commit that is fetched; without it, the newest one.
    pub(crate) revision: Option<&'static str>,
    /// The SHA-256 of its weights, where the file was seen.
    pub(crate) weights_sha256: Option<&'static str>,
    /// What its card says to put before queries and passages, where its folder does not say it.
    pub(crate) prompts: Option<[&'static str; 2]>,
}

/// A model whose newest commit is fetched and whose folder is complete.
const fn newest(name: &'static str, repository: &'static str) -> Published {
    Published { name, repository, revision: None, weights_sha256: None, prompts: None }
}

/// The models of the table in docs/models.md, in its order.
pub(crate) const PUBLISHED: [Published; 15] = [
    newest("mdbr-leaf-ir", "MongoDB/mdbr-leaf-ir"),
    Published {
        prompts: Some(["Represent this sentence for searching relevant passages: ", ""]),
        ..newest("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5")
    },
    newest("multi-qa-distilbert-cos-v1", "sentence-transformers/multi-qa-distilbert-cos-v1"),
    newest("granite-embedding-small-english-r2", "ibm-granite/granite-embedding-small-english-r2"),
    newest("granite-embedding-english-r2", "ibm-granite/granite-embedding-english-r2"),
    newest("gte-modernbert-base", "Alibaba-NLP/gte-modernbert-base"),
    newest("granite-embedding-97m-multilingual-r2", "ibm-granite/granite-embedding-97m-multilingual-r2"),
    newest("granite-embedding-311m-multilingual-r2", "ibm-granite/granite-embedding-311m-multilingual-r2"),
    Published {
        prompts: Some(["query: ", "passage: "]),
        ..newest("multilingual-e5-small", "intfloat/multilingual-e5-small")
    },
    Published {
        prompts: Some(["为这个句子生成表示以用于检索相关文章：", ""]),
        ..newest("bge-small-zh-v1.5", "BAAI/bge-small-zh-v1.5")
    },
    newest("ms-marco-MiniLM-L6-v2", "cross-encoder/ms-marco-MiniLM-L6-v2"),
    newest("ettin-reranker-17m-v1", "cross-encoder/ettin-reranker-17m-v1"),
    newest("ettin-reranker-32m-v1", "cross-encoder/ettin-reranker-32m-v1"),
    newest("ettin-reranker-68m-v1", "cross-encoder/ettin-reranker-68m-v1"),
    newest("gte-reranker-modernbert-base", "Alibaba-NLP/gte-reranker-modernbert-base"),
];

/// The model with a name.
pub(crate) fn by_name(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|model| model.name == name)
}
