//! Unusable model folders are refused with an error that names the defect.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the helpers of tests may fail as the tests do"
)]

#[path = "support/common.rs"]
mod common;

use std::fs;
use std::path::Path;

use common::{copy, fixture};
use lkr_models::{ErrorKind, Precision};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Opening fails with a configuration error whose message contains `expected`.
fn assert_refused(dir: &Path, expected: &str) {
    let error = LocalEmbedder::open(dir, LocalOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(!error.is_retryable());
    assert!(error.to_string().contains(expected), "{error} does not contain {expected:?}");
}

fn set(dir: &Path, file: &str, key: &str, value: Value) {
    let path = dir.join(file);
    let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    content[key] = value;
    fs::write(path, content.to_string()).unwrap();
}

#[test]
fn missing_folder_or_file_is_named_in_the_error() {
    assert_refused(Path::new("/nonexistent/model"), "/nonexistent/model: there is no such folder");
    for file in
        ["modules.json", "config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"]
    {
        let dir = copy("tiny-bert-mean");
        fs::remove_file(dir.path().join(file)).unwrap();
        assert_refused(dir.path(), file);
    }
}

#[test]
fn invalid_json_file_is_named_in_the_error() {
    let files = [
        "modules.json",
        "config.json",
        "tokenizer.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
    ];
    for file in files {
        let dir = copy("tiny-bert-mean");
        fs::write(dir.path().join(file), "{ \"cut").unwrap();
        assert_refused(dir.path(), file);
    }
}

#[test]
fn unsupported_setting_is_named_in_the_error() {
    let cases = [
        ("config.json", "model_type", json!("mpnet"), "model_type mpnet"),
        ("config.json", "hidden_act", json!("mish"), "hidden_act mish"),
        ("config.json", "position_embedding_type", json!("relative_key"), "relative_key"),
        ("config.json", "is_decoder", json!(true), "is_decoder"),
        ("config.json", "num_attention_heads", json!(0), "sizes"),
        ("config.json", "num_attention_heads", json!(5), "sizes"),
        ("config.json", "num_hidden_layers", json!(3), "encoder.layer.2"),
        ("config.json", "vocab_size", json!(7), "word_embeddings"),
        ("config.json", "hidden_size", json!(u64::MAX), "sizes"),
        ("1_Pooling/config.json", "pooling_mode", json!("lasttoken"), "lasttoken"),
        ("1_Pooling/config.json", "pooling_mode", json!(["cls", "mean"]), "pooling_mode"),
        ("1_Pooling/config.json", "pooling_mode_cls_token", json!(true), "cls_token"),
        ("1_Pooling/config.json", "include_prompt", json!(false), "include_prompt"),
        ("sentence_bert_config.json", "max_seq_length", json!(2), "limit of 2"),
    ];
    for (file, key, value, expected) in cases {
        let dir = copy("tiny-bert-mean");
        set(dir.path(), file, key, value);
        assert_refused(dir.path(), expected);
    }
}

#[test]
fn unsupported_setting_of_distilbert_and_modernbert_is_named_in_the_error() {
    let cases = [
        ("tiny-distilbert-mean", "dim", json!(null), "dim: invalid type: null"),
        ("tiny-distilbert-mean", "dim", json!(30), "sizes"),
        ("tiny-distilbert-mean", "activation", json!("mish"), "activation mish"),
        ("tiny-distilbert-mean", "n_layers", json!(3), "transformer.layer.2"),
        ("tiny-distilbert-mean", "hidden_dim", json!(64), "ffn.lin1.weight has shape [48, 32], not [64, 32]"),
        ("tiny-distilbert-mean", "model_type", json!("bert"), "hidden_size"),
        ("tiny-modernbert-cls", "hidden_activation", json!(null), "hidden_activation: invalid type: null"),
        ("tiny-modernbert-cls", "hidden_activation", json!("mish"), "hidden_activation mish"),
        ("tiny-modernbert-cls", "num_attention_heads", json!(0), "sizes"),
        ("tiny-modernbert-cls", "num_attention_heads", json!(32), "no halves"),
        ("tiny-modernbert-cls", "hidden_size", json!(1_u64 << 60), "tok_embeddings.weight has shape"),
        ("tiny-modernbert-cls", "intermediate_size", json!(u64::MAX), "mlp.Wi.weight has shape"),
        ("tiny-modernbert-cls", "max_position_embeddings", json!(1_u64 << 40), "max_position_embeddings"),
        ("tiny-modernbert-cls", "layer_types", json!(["full_attention"]), "layer_types has 1 entries"),
        ("tiny-modernbert-cls", "layer_types", json!(vec!["linear_attention"; 5]), "linear_attention"),
        ("tiny-modernbert-cls", "layer_types", json!(null), "neither layer_types"),
        (
            "tiny-modernbert-cls",
            "rope_parameters",
            json!(null),
            "neither rope_parameters nor global_rope_theta",
        ),
        ("tiny-modernbert-cls", "rope_parameters", json!({}), "no parameters of full_attention"),
        (
            "tiny-modernbert-cls",
            "rope_parameters",
            json!({ "full_attention": { "rope_type": "yarn", "rope_theta": 1.0 } }),
            "rope_type yarn",
        ),
        ("tiny-modernbert-cls", "rope_scaling", json!({ "factor": 4.0 }), "rope_scaling"),
        ("tiny-modernbert-dense", "global_rope_theta", json!(0.0), "not a positive number"),
        ("tiny-modernbert-dense", "local_rope_theta", json!(null), "local_rope_theta"),
        ("tiny-modernbert-dense", "global_attn_every_n_layers", json!(0), "0 is not a period"),
        ("tiny-modernbert-dense", "num_hidden_layers", json!(1_u64 << 50), "num_hidden_layers"),
        ("tiny-modernbert-dense", "num_hidden_layers", json!(6), "layers.5.attn_norm"),
        ("tiny-modernbert-dense", "attention_bias", json!("no"), "expected a boolean"),
    ];
    for (name, key, value, expected) in cases {
        let dir = copy(name);
        set(dir.path(), "config.json", key, value);
        assert_refused(dir.path(), expected);
    }
}

#[test]
fn missing_field_of_modernbert_is_named_in_the_error() {
    for field in ["hidden_activation", "intermediate_size", "local_attention", "norm_eps"] {
        let dir = copy("tiny-modernbert-cls");
        let path = dir.path().join("config.json");
        let mut config: serde_json::Map<String, Value> =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        config.remove(field).unwrap();
        fs::write(&path, json!(config).to_string()).unwrap();
        assert_refused(dir.path(), &format!("missing field `{field}`"));
    }
}

#[test]
fn unsupported_module_is_named_in_the_error() {
    let cases = [
        ("2_Dense/config.json", "in_features", json!(31), "in_features 31, but the vectors have 32 numbers"),
        ("4_Dense/config.json", "in_features", json!(31), "in_features 31, but the vectors have 40 numbers"),
        ("2_Dense/config.json", "out_features", json!(0), "out_features 0"),
        ("2_Dense/config.json", "out_features", json!(41), "shape [40, 32], not [41, 32]"),
        ("2_Dense/config.json", "activation_function", json!("torch.nn.modules.activation.Mish"), "Mish"),
        ("2_Dense/config.json", "activation_function", json!("mine.Tanh"), "mine.Tanh"),
        ("2_Dense/config.json", "activation_function", json!(null), "2_Dense/config.json"),
        ("2_Dense/config.json", "module_input_name", json!("token_embeddings"), "token_embeddings"),
        ("2_Dense/config.json", "module_output_name", json!("scores"), "module_output_name scores"),
        ("2_Dense/config.json", "use_residual", json!(true), "use_residual"),
        ("3_Normalize/config.json", "module_input_name", json!("token_embeddings"), "token_embeddings"),
        ("5_LayerNorm/config.json", "dimension", json!(47), "dimension 47, but the vectors have 48"),
        ("config_sentence_transformers.json", "truncate_dim", json!(0), "truncate_dim 0"),
        ("config_sentence_transformers.json", "truncate_dim", json!(49), "truncate_dim 49"),
        ("config_sentence_transformers.json", "truncate_dim", json!(-1), "config_sentence_transformers.json"),
    ];
    for (file, key, value, expected) in cases {
        let dir = copy("tiny-modernbert-dense");
        set(dir.path(), file, key, value);
        assert_refused(dir.path(), expected);
    }
    let file = "4_Dense/model.safetensors";
    let dir = copy("tiny-modernbert-dense");
    fs::rename(dir.path().join(file), dir.path().join("4_Dense/pytorch_model.bin")).unwrap();
    assert_refused(dir.path(), "pytorch_model.bin is not supported");
    let dir = copy("tiny-modernbert-dense");
    fs::write(dir.path().join(file), [0; 7]).unwrap();
    assert_refused(dir.path(), file);
}

#[test]
fn modules_in_an_unsupported_order_are_refused() {
    let module = |path: &str, name: &str| json!({ "path": path, "type": format!("sentence_transformers.models.{name}") });
    let (transformer, pooling) = (module("", "Transformer"), module("1_Pooling", "Pooling"));
    let cases = [
        (json!([transformer, module("2", "Dropout"), pooling]), "models.Dropout"),
        (json!([transformer]), "a Transformer and a Pooling are needed"),
        (json!([]), "a Transformer and a Pooling are needed"),
        (json!([pooling, transformer]), "the first must be the Transformer"),
        (json!([transformer, module("2_Normalize", "Normalize"), pooling]), "the second the Pooling"),
        (json!([transformer, pooling, pooling]), "the second the Pooling"),
    ];
    for (modules, expected) in cases {
        let dir = copy("tiny-bert-mean");
        fs::write(dir.path().join("modules.json"), modules.to_string()).unwrap();
        assert_refused(dir.path(), expected);
    }
}

#[test]
fn missing_default_prompt_is_refused() {
    let dir = copy("tiny-bert-cls");
    set(dir.path(), "config_sentence_transformers.json", "default_prompt_name", json!("none such"));
    set(dir.path(), "config_sentence_transformers.json", "prompts", json!({}));
    assert_refused(dir.path(), "none such");
}

#[test]
fn weights_with_wrong_shape_or_type_are_refused() {
    let dir = copy("tiny-bert-mean");
    set(dir.path(), "config.json", "intermediate_size", json!(64));
    assert_refused(dir.path(), "intermediate.dense.weight has shape [48, 32], not [64, 32]");

    let dir = copy("tiny-bert-mean");
    let path = dir.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    // The header is ASCII: the first tensor's type becomes an integer of the same width.
    let at = bytes.windows(5).position(|window| window == b"\"F32\"").unwrap();
    bytes[at..at + 5].copy_from_slice(b"\"I32\"");
    fs::write(&path, bytes).unwrap();
    assert_refused(dir.path(), "I32");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn truncated_weights_are_refused(keep in 0.0f64..1.0) {
        let dir = copy("tiny-bert-mean");
        let path = dir.path().join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..(bytes.len() as f64 * keep) as usize]).unwrap();
        assert_refused(dir.path(), "model.safetensors");
    }

    /// Opening a file with a damaged header returns, and never panics.
    #[test]
    fn damaged_header_does_not_panic(at in 0usize..3000, byte: u8) {
        let dir = copy("tiny-bert-mean");
        let path = dir.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] = byte;
        fs::write(&path, bytes).unwrap();
        let _ = LocalEmbedder::open(dir.path(), LocalOptions::default());
    }
}

/// Products of integers would hide them: without a check, int8 makes vectors of such a model that say nothing.
#[test]
fn weights_that_are_not_finite_are_refused_in_every_precision() {
    let name = "encoder.layer.0.attention.self.query.weight";
    for (number, precision) in [(f32::NAN, Precision::Int8), (f32::INFINITY, Precision::Float32)] {
        let dir = copy("tiny-bert-mean");
        let path = dir.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        let header = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let tensors: Value = serde_json::from_slice(&bytes[8..header]).unwrap();
        let tensor = &tensors[name];
        assert_eq!(tensor["dtype"], "F32");
        let begin = header + usize::try_from(tensor["data_offsets"][0].as_u64().unwrap()).unwrap();
        bytes[begin + 4..begin + 8].copy_from_slice(&number.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let options = LocalOptions { precision, ..LocalOptions::default() };
        let error = LocalEmbedder::open(dir.path(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(
            error.to_string().contains("model.safetensors: tensor ") && error.to_string().contains(name),
            "{error}"
        );
    }
}

#[test]
fn model_whose_vectors_are_not_finite_is_refused() {
    let dir = copy("tiny-bert-mean");
    set(dir.path(), "config.json", "layer_norm_eps", json!(-1.0));
    assert_refused(dir.path(), "it cannot encode a short text: ");
}

/// The library that reads the tokenizer panics on them.
#[test]
fn damaged_tokenizer_is_refused_without_a_panic() {
    let normalizer = |map: &str| json!({ "type": "Precompiled", "precompiled_charsmap": map });
    let template = json!({
        "type": "TemplateProcessing",
        "single": [{ "SpecialToken": { "id": "[CLS]", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
        "pair": [],
        "special_tokens": {},
    });
    let damages = [
        ("normalizer", normalizer("AAAA")),
        ("normalizer", normalizer("BAAAAAAAAAAAAAAA")),
        ("post_processor", template),
    ];
    for (key, value) in damages {
        let dir = copy("tiny-bert-mean");
        set(dir.path(), "tokenizer.json", key, value);
        assert_refused(dir.path(), "tokenizer.json: ");
    }
}

#[test]
fn options_override_the_folder_and_change_the_id() {
    let folder = fixture("tiny-bert-cls");
    let open = |options| LocalEmbedder::open(&folder, options).unwrap();
    use lkr_models::Embedder;
    let plain = open(LocalOptions::default());
    let prefixed = open(LocalOptions { passage_prefix: Some("title: ".into()), ..LocalOptions::default() });
    let scaled =
        open(LocalOptions { cosine_scale: Some(12.0), passage_threads: 0, ..LocalOptions::default() });
    assert_ne!(plain.profile().id, prefixed.profile().id);
    assert_eq!(plain.profile().id, scaled.profile().id);
    assert_eq!((plain.profile().cosine_scale, scaled.profile().cosine_scale), (None, Some(12.0)));
}

#[tokio::test]
async fn truncated_vector_is_the_start_of_the_whole_one() {
    use lkr_models::{EmbedKind, Embedder};
    let folder = fixture("tiny-bert-dense");
    let open = |truncate_dim| {
        LocalEmbedder::open(&folder, LocalOptions { truncate_dim, ..LocalOptions::default() }).unwrap()
    };
    let texts = ["the council approved the budget".to_owned()];
    let whole = open(None);
    let vector = &whole.embed(EmbedKind::Passage, &texts).await.unwrap()[0];
    for dims in [1, 7, 47] {
        let cut = open(Some(dims));
        assert_eq!(cut.profile().dims, dims);
        assert_ne!(cut.profile().id, whole.profile().id);
        assert_eq!(cut.profile().name, format!("tiny-bert-dense ({dims} of 48 dimensions)"));
        let found = &cut.embed(EmbedKind::Passage, &texts).await.unwrap()[0];
        let length = vector[..dims].iter().map(|x| x * x).sum::<f32>().sqrt();
        assert_eq!(found.len(), dims);
        for (found, expected) in found.iter().zip(vector) {
            assert!((found - expected / length).abs() < 1e-6, "{found} {expected}");
        }
    }
    // All dimensions are the model without a limit.
    assert_eq!(open(Some(48)).profile(), whole.profile());
    // The option takes precedence over the folder.
    let folder = fixture("tiny-modernbert-dense");
    let open = |truncate_dim| {
        LocalEmbedder::open(&folder, LocalOptions { truncate_dim, ..LocalOptions::default() }).unwrap()
    };
    assert_eq!([open(None), open(Some(48)), open(Some(10))].map(|model| model.profile().dims), [24, 48, 10]);
}

#[test]
fn weights_and_settings_of_modules_change_the_id() {
    use lkr_models::Embedder;
    let id = |dir: &Path| LocalEmbedder::open(dir, LocalOptions::default()).unwrap().profile().id.clone();
    let name = "tiny-modernbert-dense";
    let mut ids = vec![id(&fixture(name))];
    assert_eq!(id(copy(name).path()), ids[0]);
    for file in ["2_Dense/model.safetensors", "5_LayerNorm/model.safetensors"] {
        let dir = copy(name);
        let path = dir.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
        ids.push(id(dir.path()));
    }
    for (file, key, value) in [
        ("4_Dense/config.json", "activation_function", json!("torch.nn.modules.activation.ReLU")),
        ("1_Pooling/config.json", "pooling_mode", json!("mean")),
        ("config_sentence_transformers.json", "truncate_dim", json!(23)),
        ("config.json", "local_attention", json!(12)),
        ("config.json", "local_rope_theta", json!(301.0)),
        ("config.json", "global_attn_every_n_layers", json!(3)),
    ] {
        let dir = copy(name);
        set(dir.path(), file, key, value);
        ids.push(id(dir.path()));
    }
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

/// Ids that stored vectors carry: another id means that all documents are embedded again.
#[test]
fn ids_of_the_first_families_have_not_changed() {
    use lkr_models::{Embedder, Reranker};
    use lkr_models_local::{LocalReranker, RerankOptions};
    let ids = ["tiny-bert-mean", "tiny-bert-cls", "tiny-xlm-roberta-mean"].map(|name| {
        LocalEmbedder::open(&fixture(name), LocalOptions::default()).unwrap().profile().id.clone()
    });
    assert_eq!(
        ids,
        [
            "c0145d81841e8f3f814c57bbba829ed0",
            "6fea53a3b29cf63f89a0d775e9f60168",
            "9b49165444bf78a83081de2bf1d53899"
        ]
    );
    let ids = ["tiny-bert-reranker", "tiny-xlm-roberta-reranker"].map(|name| {
        LocalReranker::open(&fixture(name), &RerankOptions::default()).unwrap().profile().id.clone()
    });
    assert_eq!(ids, ["e75519d27236c65061f9229165bfead0", "adb540ee284955c81c4d23dd5a8cd7f2"]);
}
