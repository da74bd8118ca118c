//! The settings as JSON Schema, for people and forms.

use serde_json::{Map, Value, json};

use crate::{
    DedupStrategy, ModelEntry, Models, Plugins, Provider, RuntimeSettings,
    check::{
        API_KEY_CHARS, BASE_URL_CHARS, CONTEXT_TOKENS, LANGUAGES, MODEL_CHARS, SIMHASH_THRESHOLD, TIMEOUT_S,
    },
    languages,
    plugins::ParserKind,
};

/// The schema of settings whose defaults are `defaults`.
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
    object("Which model does what.", described)
}

fn model_purpose(name: &str) -> &'static str {
    match name {
        "embed" => {
            "The model that makes vectors. Its provider answers POST {base_url}/embeddings, as OpenAI, Ollama, \
             llama.cpp and vLLM do. Without a provider it is the one in the process."
        }
        "summarize" => {
            "The model that writes summaries. Its provider answers POST {base_url}/chat/completions, as OpenAI, Ollama, \
             llama.cpp and vLLM do."
        }
        "classify" => "The model that finds categories. Its provider answers as that of summarize.",
        "rerank" => {
            "The model that ranks results again. Its provider answers POST {base_url}/rerank, as vLLM, TEI and Jina \
             do. Without a provider it is the one in the process, where there is one."
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
                    "description": "Who serves the model; null for nobody.",
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
                    "description": "Where the provider is: an http or https address without user info, query and \
                        fragment, or empty. Another address than before clears the stored key, unless the same \
                        change sends one.",
                    "type": "string",
                    "maxLength": BASE_URL_CHARS,
                    "default": defaults.base_url,
                }),
            ),
            (
                "api_key",
                json!({
                    "description": "The key for the provider, of visible ASCII characters. It can be written and \
                        never read: answers show the mask ******** where one is stored, and null where none is. \
                        Writing the mask keeps the stored key, writing null clears it.",
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": API_KEY_CHARS,
                    "default": null,
                }),
            ),
            (
                "timeout_s",
                json!({
                    "description": "How long one call of the model may take, in seconds.",
                    "type": "integer",
                    "minimum": TIMEOUT_S.start(),
                    "maximum": TIMEOUT_S.end(),
                    "default": defaults.timeout_s,
                }),
            ),
            (
                "context_tokens",
                json!({
                    "description": "How many tokens a language model takes at a time, those of its answer included. \
                        What it is shown is cut to fit; a server that is started with less cuts it unasked.",
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
    let codes: Vec<&str> = languages::codes().collect();
    let languages = json!({
        "description": "The languages that are looked for, as two-letter codes of ISO 639-1.",
        "type": "array",
        "items": { "type": "string", "enum": codes },
        "minItems": LANGUAGES.start(),
        "maxItems": LANGUAGES.end(),
        "default": defaults.parsers.ocr.languages,
    });
    let ocr = [("plugin", plugin(ParserKind::Ocr, plugins)), ("languages", languages)];
    object(
        "Which parser plugin reads which kind of file.",
        [
            file(ParserKind::Pdf, "For PDF files."),
            file(ParserKind::Docx, "For DOCX files."),
            file(ParserKind::Html, "For HTML files."),
            (ParserKind::Ocr.name(), object("For text in images.", ocr)),
        ],
    )
}

fn plugin(kind: ParserKind, plugins: &Plugins) -> Value {
    json!({
        "description": "The plugin, one of those that are built in.",
        "type": "string",
        "enum": plugins.of(kind),
        "default": plugins.default_of(kind),
    })
}

fn dedup(defaults: &RuntimeSettings) -> Value {
    object(
        "How duplicates are found.",
        [
            (
                "strategy",
                json!({
                    "description": "By what two texts are the same.",
                    "type": "string",
                    "enum": DedupStrategy::ALL.map(DedupStrategy::name),
                    "default": defaults.dedup.strategy.name(),
                }),
            ),
            (
                "simhash_threshold",
                json!({
                    "description": "Of how many of 64 bits the simhashes of two texts may differ that count as one.",
                    "type": "integer",
                    "minimum": SIMHASH_THRESHOLD.start(),
                    "maximum": SIMHASH_THRESHOLD.end(),
                    "default": defaults.dedup.simhash_threshold,
                }),
            ),
        ],
    )
}

/// The schema of an object that has all of these properties and no other.
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
