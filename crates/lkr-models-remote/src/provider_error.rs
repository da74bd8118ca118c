//! Reads the error bodies of providers.

use lkr_outgoing::StatusCode;
use lkr_sealing::Secret;
use serde_json::Value;

/// The longest excerpt of a message, in characters.
const EXCERPT_CHARS: usize = 200;
/// A word that contains this many consecutive bytes of the key is masked.
const KEY_PART: usize = 8;

/// An error body of a provider.
#[derive(Debug, Default)]
pub(crate) struct ProviderError {
    /// The message of a body of a known form. Another body may be that of any internal server, and is not repeated.
    message: String,
    /// Message, code, type and parameter in lower case, or a body of another form, for searching.
    searchable: String,
    /// The status in the body.
    pub(crate) status: Option<StatusCode>,
}

impl ProviderError {
    /// Parses a response body. Known forms: `{"error": {"message", "type", "param", "code"}}` (OpenAI and most others),
    /// `{"error": "…"}` (Ollama, TEI), `{"object": "error", "message", "type", "param", "code"}` (vLLM), `{"detail": "…"}` and
    /// `{"detail": [{"msg"}]}` (FastAPI), and a list whose first element is one of these (Google).
    pub(crate) fn parse(body: &[u8]) -> Self {
        let value = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let value = value.get(0).unwrap_or(&value);
        if let Some(error) = value.get("error").or_else(|| value.get("detail")) {
            return Self::from_value(error);
        }
        let is_error = ["object", "type", "code"].iter().any(|name| value.get(name).is_some());
        match Self::from_value(value) {
            error if is_error && value.is_object() => error,
            other => Self { message: String::new(), ..other },
        }
    }

    /// Reads the value of the field `error` or `detail`.
    pub(crate) fn from_value(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let details =
            || error.as_array()?.iter().map(|detail| detail.get("msg")?.as_str()).collect::<Option<Vec<_>>>();
        let message = match error {
            Value::String(message) => message.clone(),
            Value::Array(_) => details().unwrap_or_default().join("; "),
            _ => text("message").to_owned(),
        };
        let unknown = if message.is_empty() && !error.is_null() { error.to_string() } else { String::new() };
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code));
        let searchable =
            [&message, &unknown, text("code"), text("type"), text("param")].join("\n").to_lowercase();
        Self { message, searchable, status: status.and_then(|code| StatusCode::from_u16(code).ok()) }
    }

    /// Whether the error contains one of `terms`, which are in lower case.
    pub(crate) fn mentions(&self, terms: &[&str]) -> bool {
        terms.iter().any(|term| self.searchable.contains(term))
    }

    /// Whether the provider rejects the key.
    pub(crate) fn is_wrong_key(&self) -> bool {
        self.mentions(&["invalid_api_key", "api key not valid", "incorrect api key", "invalid api key"])
    }

    /// Whether the provider does not know the model.
    pub(crate) fn is_unknown_model(&self) -> bool {
        let missing = ["not found", "does not exist", "not exist", "unknown model", "not loaded"];
        self.mentions(&["model_not_found", "model_not_exist"])
            || self.mentions(&["model"]) && self.mentions(&missing)
    }

    /// Whether a text is too long or the batch too large. The terms are those of OpenAI, vLLM, llama.cpp, Ollama, TEI and
    /// compatible servers.
    pub(crate) fn is_too_large(&self) -> bool {
        let tokens = self.mentions(&["must have less than"]) && self.mentions(&["token"]);
        tokens
            || self.mentions(&[
                "context_length_exceeded",
                "exceed_context_size",
                "maximum context length",
                "context length",
                "context size",
                "context window",
                "maximum model length",
                "maximum input length",
                "maximum allowed batch size",
                "max allowed tokens",
                "physical batch size",
                "input is too long",
                "input too long",
                "too many inputs",
                "too many tokens",
                "array_above_max_length",
                "string_above_max_length",
            ])
    }

    /// Whether the account's quota or credit is used up.
    pub(crate) fn is_quota_exceeded(&self) -> bool {
        self.mentions(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "insufficient balance",
            "insufficient credits",
        ])
    }

    /// The beginning of the message in one line, without control characters. Words with a part of the key are masked.
    pub(crate) fn excerpt(&self, key: Option<&Secret>) -> String {
        let words =
            self.message.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let leaks = |word: &str| key.is_some_and(|key| contains_key_part(word, key.expose()));
        let masked = words.map(|word| if leaks(word) { "********" } else { word });
        let mut excerpt = String::new();
        for word in masked {
            let space = if excerpt.is_empty() { "" } else { " " };
            excerpt.push_str(space);
            excerpt.push_str(word);
            if let Some((end, _)) = excerpt.char_indices().nth(EXCERPT_CHARS) {
                excerpt.truncate(end);
                excerpt.push('…');
                break;
            }
        }
        excerpt
    }
}

/// Whether a word contains [`KEY_PART`] consecutive bytes of a key.
fn contains_key_part(word: &str, key: &str) -> bool {
    let (word, key) = (word.as_bytes(), key.as_bytes());
    let part = KEY_PART.min(key.len()).max(1);
    key.windows(part).any(|part| word.windows(part.len()).any(|window| window == part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn error_bodies_of_all_known_forms_are_parsed() {
        for (body, message) in [
            (r#"{"error": {"message": "no", "type": "a", "param": null, "code": "b"}}"#, "no"),
            (r#"{"error": "no"}"#, "no"),
            (r#"{"object": "error", "message": "no", "code": 400}"#, "no"),
            (r#"{"detail": "no"}"#, "no"),
            (r#"[{"error": {"message": "no", "code": 400}}]"#, "no"),
            (r#"{"detail": [{"loc": ["x"], "msg": "no"}, {"msg": "never"}]}"#, "no; never"),
            ("{\"error\": \"no\\r\\n\\u001b[31m way\"}", "no [31m way"),
            // Not the errors of a provider.
            (r#"{"detail": [{"loc": ["x"]}]}"#, ""),
            (r#"{"error": {"trace": "secret"}}"#, ""),
            (r#"{"message": "secret"}"#, ""),
            (r#"{"password": "secret"}"#, ""),
            (r#"["secret"]"#, ""),
            ("\"secret\"", ""),
            ("<html>secret</html>", ""),
            ("", ""),
            ("null", ""),
        ] {
            assert_eq!(ProviderError::parse(body.as_bytes()).excerpt(None), message, "{body}");
        }
        assert_eq!(
            ProviderError::parse(br#"{"error": {"code": 502}}"#).status,
            Some(StatusCode::BAD_GATEWAY)
        );
        assert_eq!(ProviderError::parse(br#"{"error": {"code": 7}}"#).status, None);
    }

    #[test]
    fn errors_are_classified_by_their_texts() {
        let parse = |text: &str| ProviderError::parse(text.as_bytes());
        for text in [
            r#"{"error": {"code": "context_length_exceeded"}}"#,
            r#"{"error": {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}"#,
            "This model's maximum context length is 4096 tokens. However, you requested 5000",
            "the input length exceeds the context length",
            "input is too large to process. increase the physical batch size",
            "`inputs` must have less than 512 tokens. Given: 600",
            "batch size 64 > maximum allowed batch size 32",
        ] {
            assert!(parse(text).is_too_large(), "{text}");
        }
        for text in [
            "The model `x` does not exist or you do not have access to it.",
            r#"model "x" not found, try pulling it first"#,
            r#"{"error": {"code": "model_not_found"}}"#,
        ] {
            assert!(parse(text).is_unknown_model() && !parse(text).is_too_large(), "{text}");
        }
        assert!(parse(r#"{"error": {"code": "insufficient_quota"}}"#).is_quota_exceeded());
        assert!(!parse("a name must have less than 64 letters").is_too_large());
        assert!(
            !parse("slow down").is_quota_exceeded()
                && !parse("not found").is_unknown_model()
                && !parse("").is_too_large()
        );
    }

    proptest! {
        #[test]
        fn excerpt_contains_no_part_of_the_key(
            before in "\\PC{0,30}", key in "sk-[a-zA-Z0-9]{20,40}", after in "\\PC{0,30}", from in 0_usize..10,
        ) {
            let part = key.split_at(from).1;
            let message = serde_json::json!({ "error": format!("{before}{part}{after}") }).to_string();
            let excerpt = ProviderError::parse(message.as_bytes()).excerpt(Some(&Secret::new(key.as_str())));
            for part in part.as_bytes().windows(KEY_PART) {
                prop_assert!(!excerpt.contains(std::str::from_utf8(part).unwrap()), "{}", excerpt);
            }
        }

        #[test]
        fn excerpt_is_short_and_has_no_control_characters(message: String) {
            let body = serde_json::json!({ "error": message }).to_string();
            let excerpt = ProviderError::parse(body.as_bytes()).excerpt(None);
            prop_assert!(excerpt.chars().count() <= EXCERPT_CHARS + 1 && !excerpt.contains(char::is_control));
        }
    }
}
