//! The JSON Schema of the settings, for people and for forms.

use serde_json::{Map, Value, json};

use crate::{
    DedupStrategy, ModelEntry, Models, Plugins, Provider, RuntimeSettings,
    check::{
        API_KEY_CHARS, BASE_URL_CHARS, CONTEXT_TOKENS, LANGUAGES, MODEL_CHARS, SIMHASH_THRESHOLD, TIMEOUT_S,
    },
    iso_639,
    plugins::ParserKind,
};

/// The schema of settings with these defaults.
pub(crate) fn schema(defaults: &RuntimeSettings, plugins: &Plugins) -> Value {
    let mut schema = object(
        "Settings that can be changed while the service runs.",
        [
            ("models", models(&defaults.models)),
            ("parsers", parsers(defaults, plugins)),
            ("dedup", dedup(defaults)),
        ],
    );
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!("RuntimeSettings"));
    }
    schema
}

fn models(defaults: &Models) -> Value {
    let described = defaults.named().map(|(name, entry)| (name, model(model_purpose(name), entry)));
    object("The model of each purpose.", described)
}

fn model_purpose(name: &str) -> &'static str {
    match name {
        "embed" => {
            "The embedding model. Its provider serves POST {base_url}/embeddings, as OpenAI, Ollama, llama.cpp \
             and vLLM do. Without a provider, the model in the process is used."
        }
        "summarize" => {
            "The model that writes summaries. Its provider serves POST {base_url}/chat/completions, as OpenAI, Ollama, \
             llama.cpp and vLLM do."
        }
        "classify" => {
            "The model that classifies documents. Its provider serves the same API as that of summarize."
        }
        "rerank" => {
            "The reranking model. Its provider serves POST {base_url}/rerank, as vLLM, TEI and Jina do. Without \
             a provider, the model in the process is used, if there is one."
        }
        _ => "A model.",
    }
}

fn model(description: &str, defaults: &ModelEntry) -> Value {
    let providers = Provider::ALL.map(Provider::name).into_iter().map(Value::from);
    let providers: Vec<Value> = providers.chain([Value::Null]).collect();
    object(
        description,
        [
            (
                "provider",
                json!({
                    "description": "The kind of the model's provider; null for none.",
                    "type": ["string", "null"],
                    "enum": providers,
                    "default": defaults.provider.map(Provider::name),
                }),
            ),
            (
                "model",
                json!({
                    "description": "The name of the model at the provider, without control characters.",
                    "type": "string",
                    "maxLength": MODEL_CHARS,
                    "default": defaults.model,
                }),
            ),
            (
                "base_url",
                json!({
                    "description": "The provider's http or https address without user info, query and fragment, or \
                        empty. A different address clears the stored key, unless the same change sets one.",
                    "type": "string",
                    "maxLength": BASE_URL_CHARS,
                    "default": defaults.base_url,
                }),
            ),
            (
                "api_key",
                json!({
                    "description": "The key for the provider, of visible ASCII characters. It can be written but not \
                        read: responses show the mask ******** if a key is stored, else null. Writing the mask \
                        keeps the stored key; writing null clears it.",
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": API_KEY_CHARS,
                    "default": null,
                }),
            ),
            (
                "timeout_s",
                json!({
                    "description": "The timeout of one model call, in seconds.",
                    "type": "integer",
                    "minimum": TIMEOUT_S.start(),
                    "maximum": TIMEOUT_S.end(),
                    "default": defaults.timeout_s,
                }),
            ),
            (
                "context_tokens",
                json!({
                    "description": "The context length of the language model in tokens, its output included. Longer \
                        input is shortened to fit. A server with a shorter context may cut the input silently.",
                    "type": "integer",
                    "minimum": CONTEXT_TOKENS.start(),
                    "maximum": CONTEXT_TOKENS.end(),
                    "default": defaults.context_tokens,
                }),
            ),
        ],
    )
}

fn parsers(defaults: &RuntimeSettings, plugins: &Plugins) -> Value {
    let file = |kind: ParserKind, description: &str| {
        (kind.name(), object(description, [("plugin", plugin(kind, plugins))]))
    };
    let codes: Vec<&str> = iso_639::codes().collect();
    let languages = json!({
        "description": "The languages that are recognised, as two-letter codes of ISO 639-1.",
        "type": "array",
        "items": { "type": "string", "enum": codes },
        "minItems": LANGUAGES.start(),
        "maxItems": LANGUAGES.end(),
        "default": defaults.parsers.ocr.languages,
    });
    let ocr = [("plugin", plugin(ParserKind::Ocr, plugins)), ("languages", languages)];
    object(
        "The parser plugin of each kind of file.",
        [
            file(ParserKind::Pdf, "For PDF files."),
            file(ParserKind::Docx, "For DOCX files."),
            file(ParserKind::Html, "For HTML files."),
            (ParserKind::Ocr.name(), object("For OCR of images.", ocr)),
        ],
    )
}

fn plugin(kind: ParserKind, plugins: &Plugins) -> Value {
    json!({
        "description": "The name of a built-in plugin.",
        "type": "string",
        "enum": plugins.for_kind(kind),
        "default": plugins.default_for(kind),
    })
}

fn dedup(defaults: &RuntimeSettings) -> Value {
    object(
        "How duplicates are found.",
        [
            (
                "strategy",
                json!({
                    "description": "How two texts are compared.",
                    "type": "string",
                    "enum": DedupStrategy::ALL.map(DedupStrategy::name),
                    "default": defaults.dedup.strategy.name(),
                }),
            ),
            (
                "simhash_threshold",
                json!({
                    "description": "In how many of 64 bits the SimHashes of two duplicates may differ at most.",
                    "type": "integer",
                    "minimum": SIMHASH_THRESHOLD.start(),
                    "maximum": SIMHASH_THRESHOLD.end(),
                    "default": defaults.dedup.simhash_threshold,
                }),
            ),
        ],
    )
}

/// The schema of an object with exactly these properties.
fn object<const N: usize>(description: &str, properties: [(&str, Value); N]) -> Value {
    let required: Vec<String> = properties.iter().map(|(name, _)| (*name).to_owned()).collect();
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
