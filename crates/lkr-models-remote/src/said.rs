//! What providers say of what they refuse.

use lkr_outgoing::StatusCode;
use lkr_sealing::Secret;
use serde_json::Value;

/// How much of a message is shown, in characters.
const SHOWN_CHARS: usize = 200;
/// So much of a key at one place gives it away.
const KEY_PART: usize = 8;

/// What a provider said of an error.
#[derive(Debug, Default)]
pub(crate) struct Said {
    message: String,
    /// All of it in lower case, to be searched.
    all: String,
    /// The status that stands in the body.
    pub(crate) status: Option<StatusCode>,
}

impl Said {
    /// Reads what the providers write: `{"error": {"message", "type", "param", "code"}}` (OpenAI and most),
    /// `{"error": "…"}` (Ollama, TEI), `{"message", "type", "param", "code"}` (vLLM), `{"detail": …}` (FastAPI), the
    /// first of these in a list (Google), or plain text.
    pub(crate) fn read(body: &[u8]) -> Self {
        let value = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let value = value.get(0).unwrap_or(&value);
        Self::of(value.get("error").or_else(|| value.get("detail")).unwrap_or(value))
    }

    /// Reads what stands under `error`.
    pub(crate) fn of(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let message = match error {
            Value::String(message) => message.clone(),
            Value::Null => String::new(),
            other if text("message").is_empty() => other.to_string(),
            _ => text("message").to_owned(),
        };
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code));
        let all = [&message, text("code"), text("type"), text("param")].join("\n").to_lowercase();
        Self { message, all, status: status.and_then(|code| StatusCode::from_u16(code).ok()) }
    }

    /// Whether one of these stands in it; they are in lower case.
    pub(crate) fn mentions(&self, any: &[&str]) -> bool {
        any.iter().any(|part| self.all.contains(part))
    }

    /// That the key is wrong.
    pub(crate) fn wrong_key(&self) -> bool {
        self.mentions(&["invalid_api_key", "api key not valid", "incorrect api key", "invalid api key"])
    }

    /// That the model is not known.
    pub(crate) fn no_model(&self) -> bool {
        let missing = ["not found", "does not exist", "not exist", "unknown model", "not loaded"];
        self.mentions(&["model_not_found", "model_not_exist"])
            || self.mentions(&["model"]) && self.mentions(&missing)
    }

    /// That a text is longer than the model takes, or that it is too many texts: of OpenAI, vLLM, llama.cpp, Ollama,
    /// TEI and their like.
    pub(crate) fn too_much(&self) -> bool {
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

    /// That what was paid for is used up.
    pub(crate) fn no_quota(&self) -> bool {
        self.mentions(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "insufficient balance",
            "insufficient credits",
        ])
    }

    /// The beginning of the message in one line, without control characters and without the key.
    pub(crate) fn shown(&self, key: Option<&Secret>) -> String {
        let words =
            self.message.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let safe = words
            .map(|word| if key.is_some_and(|key| tells(word, key.expose())) { "********" } else { word });
        let mut shown = String::new();
        for word in safe {
            let space = if shown.is_empty() { "" } else { " " };
            shown.push_str(space);
            shown.push_str(word);
            if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
                shown.truncate(end);
                shown.push('…');
                break;
            }
        }
        shown
    }
}

/// Whether a word tells a part of a key.
fn tells(word: &str, key: &str) -> bool {
    let (word, key) = (word.as_bytes(), key.as_bytes());
    let part = KEY_PART.min(key.len()).max(1);
    key.windows(part).any(|part| word.windows(part.len()).any(|window| window == part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_providers_write() {
        for (body, message) in [
            (r#"{"error": {"message": "no", "type": "a", "param": null, "code": "b"}}"#, "no"),
            (r#"{"error": "no"}"#, "no"),
            (r#"{"object": "error", "message": "no", "code": 400}"#, "no"),
            (r#"{"detail": "no"}"#, "no"),
            (r#"[{"error": {"message": "no", "code": 400}}]"#, "no"),
            (r#"{"detail": [{"loc": ["x"]}]}"#, r#"[{"loc":["x"]}]"#),
            ("no\r\n\u{1b}[31m way", "no [31m way"),
            ("", ""),
            ("null", ""),
        ] {
            assert_eq!(Said::read(body.as_bytes()).shown(None), message, "{body}");
        }
        assert_eq!(Said::read(br#"{"error": {"code": 502}}"#).status, Some(StatusCode::BAD_GATEWAY));
        assert_eq!(Said::read(br#"{"error": {"code": 7}}"#).status, None);
    }

    #[test]
    fn what_is_meant() {
        let said = |text: &str| Said::read(text.as_bytes());
        for text in [
            r#"{"error": {"code": "context_length_exceeded"}}"#,
            r#"{"error": {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}"#,
            "This model's maximum context length is 4096 tokens. However, you requested 5000",
            "the input length exceeds the context length",
            "input is too large to process. increase the physical batch size",
            "`inputs` must have less than 512 tokens. Given: 600",
            "batch size 64 > maximum allowed batch size 32",
        ] {
            assert!(said(text).too_much(), "{text}");
        }
        for text in [
            "The model `x` does not exist or you do not have access to it.",
            r#"model "x" not found, try pulling it first"#,
            r#"{"error": {"code": "model_not_found"}}"#,
        ] {
            assert!(said(text).no_model() && !said(text).too_much(), "{text}");
        }
        assert!(said(r#"{"error": {"code": "insufficient_quota"}}"#).no_quota());
        assert!(!said("a name must have less than 64 letters").too_much());
        assert!(!said("slow down").no_quota() && !said("not found").no_model() && !said("").too_much());
    }

    proptest! {
        /// Wherever it stands, whole or in part.
        #[test]
        fn no_part_of_a_key_is_shown(
            before in "\\PC{0,30}", key in "sk-[a-zA-Z0-9]{20,40}", after in "\\PC{0,30}", from in 0_usize..10,
        ) {
            let part = key.split_at(from).1;
            let message = format!("{before}{part}{after}");
            let shown = Said::read(message.as_bytes()).shown(Some(&Secret::new(key.as_str())));
            for part in part.as_bytes().windows(KEY_PART) {
                prop_assert!(!shown.contains(std::str::from_utf8(part).unwrap()), "{}", shown);
            }
        }

        #[test]
        fn what_is_shown_is_short_and_plain(body: Vec<u8>) {
            let shown = Said::read(&body).shown(None);
            prop_assert!(shown.chars().count() <= SHOWN_CHARS + 1 && !shown.contains(char::is_control));
        }
    }
}
