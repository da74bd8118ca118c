//! The models that `cargo xtask model NAME` fetches.

/// A published model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    /// The name of its folder.
    pub(crate) name: &'static str,
    /// Its repository: the owner and the name there.
    pub(crate) repository: &'static str,
    /// The commit that is fetched unless another revision is asked for.
    pub(crate) revision: &'static str,
    /// The SHA-256 of its weights, where the file was seen. Digests that only others state are not recorded.
    pub(crate) weights_sha256: Option<&'static str>,
    /// What its card says to put before queries and passages, where its folder does not say it.
    pub(crate) prompts: Option<[&'static str; 2]>,
}

/// A model whose weights were not seen and whose folder is complete.
const fn pinned(name: &'static str, repository: &'static str, revision: &'static str) -> Published {
    Published { name, repository, revision, weights_sha256: None, prompts: None }
}

/// The default model.
pub(crate) const ALL_MINILM_L6_V2: Published = Published {
    weights_sha256: Some("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    // Other projects state this commit together with the digest above.
    ..pinned(
        "all-MiniLM-L6-v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    )
};

/// The models of the tables in docs/models.md, in their order.
///
/// The repositories themselves could not be asked. Each commit is one that at least two public projects name together with its
/// repository, but for one; the comments say what else is known of it. "mteb" is embeddings-benchmark/mteb at a905523d.
pub(crate) const PUBLISHED: [Published; 16] = [
    ALL_MINILM_L6_V2,
    // Others load it with sentence-transformers or state the digest of 2_Dense/model.safetensors. mteb names 2e46f5aa.
    pinned("mdbr-leaf-ir", "MongoDB/mdbr-leaf-ir", "4262131b32c3182bd06e67e92ae69d7bd66e0c5c"),
    // mteb; others state the digest of model.safetensors.
    Published {
        prompts: Some(["Represent this sentence for searching relevant passages: ", ""]),
        ..pinned("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a")
    },
    // The repository's own page of the commit, in a public archive, lists model.safetensors; no other project names it.
    pinned(
        "multi-qa-distilbert-cos-v1",
        "sentence-transformers/multi-qa-distilbert-cos-v1",
        "baef59d92c180515e59ba5d609dfba967347c45e",
    ),
    // Others state the size of model.safetensors. mteb names other commits of this and the four granite models.
    pinned(
        "gte-modernbert-base",
        "Alibaba-NLP/gte-modernbert-base",
        "e7f32e3c00f91d699e8c43b53106206bcc72bb22",
    ),
    pinned(
        "granite-embedding-small-english-r2",
        "ibm-granite/granite-embedding-small-english-r2",
        "2ab6fa8ea2d674564defd37171ae19079b864b33",
    ),
    pinned(
        "granite-embedding-english-r2",
        "ibm-granite/granite-embedding-english-r2",
        "47ea694b257b703fee9253d75c2b1f2985180498",
    ),
    pinned(
        "granite-embedding-97m-multilingual-r2",
        "ibm-granite/granite-embedding-97m-multilingual-r2",
        "835ad14087e140460703cf0fae09f97d469d65c2",
    ),
    // Others state the digest of model.safetensors.
    pinned(
        "granite-embedding-311m-multilingual-r2",
        "ibm-granite/granite-embedding-311m-multilingual-r2",
        "44399559930365213510b1ee2eb15ded83374f0e",
    ),
    // mteb; others state the size and the digest of model.safetensors.
    Published {
        prompts: Some(["query: ", "passage: "]),
        ..pinned(
            "multilingual-e5-small",
            "intfloat/multilingual-e5-small",
            "fd1525a9fd15316a2d503bf26ab031a61d056e98",
        )
    },
    // mteb; others load it with sentence-transformers.
    Published {
        prompts: Some(["为这个句子生成表示以用于检索相关文章：", ""]),
        ..pinned("bge-small-zh-v1.5", "BAAI/bge-small-zh-v1.5", "7999e1d3359715c523056ef9478215996d62a620")
    },
    // mteb; another project states the size of model.safetensors.
    pinned(
        "ms-marco-MiniLM-L6-v2",
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "c5ee24cb16019beea0893ab7796b1df96625c6b8",
    ),
    // mteb, with the numbers of parameters; others have the digests of the 17 M model's Dense modules.
    pinned(
        "ettin-reranker-17m-v1",
        "cross-encoder/ettin-reranker-17m-v1",
        "9e4aa35321a6dd1a43ca313f500c4b4f7cfb5cc6",
    ),
    pinned(
        "ettin-reranker-32m-v1",
        "cross-encoder/ettin-reranker-32m-v1",
        "b33e5ceb5110773ea9cf5e00c9bedc83a8c2afdd",
    ),
    pinned(
        "ettin-reranker-68m-v1",
        "cross-encoder/ettin-reranker-68m-v1",
        "d166fa88ddde3c42bc3ee92f7df476d941c8204a",
    ),
    // Others ran its float32 weights; an older page of the repository lists model.safetensors.
    pinned(
        "gte-reranker-modernbert-base",
        "Alibaba-NLP/gte-reranker-modernbert-base",
        "f7481e6055501a30fb19d090657df9ec1f79ab2c",
    ),
];

/// The model with a name.
pub(crate) fn by_name(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|model| model.name == name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn is_lower_hex(text: &str, length: usize) -> bool {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    #[test]
    fn revisions_and_digests_are_lower_case_hex_of_full_length() {
        for model in PUBLISHED {
            assert!(is_lower_hex(model.revision, 40), "{}", model.name);
            assert!(model.weights_sha256.is_none_or(|digest| is_lower_hex(digest, 64)), "{}", model.name);
        }
    }

    #[test]
    fn documentation_lists_the_same_models_in_the_same_order() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md")).unwrap();
        // The first cell of each row is a model's name, and a remark after a space; headings and rules are not rows.
        let listed = page.lines().filter_map(|line| line.strip_prefix("| ")?.split([' ', '|']).next());
        let listed: Vec<_> = listed.filter(|cell| !["embedding", "reranker"].contains(cell)).collect();
        assert_eq!(listed, PUBLISHED.map(|model| model.name));
    }
}
