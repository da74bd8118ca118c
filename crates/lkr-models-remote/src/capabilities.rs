//! The optional features of the chat API that a provider supports, learned from its refusals.

use crate::provider_error::ProviderError;

/// The features of the chat API that requests use: all of them, except those that the provider refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderCapabilities {
    /// The response format for requests with a schema.
    pub response_format: ResponseFormat,
    /// Whether streams report their token usage (`stream_options`).
    pub stream_usage: bool,
    /// Whether the token limit is sent as `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether the temperature is sent.
    pub temperature: bool,
}

/// The terms with which providers report an unknown field.
const UNKNOWN_FIELD: [&str; 6] =
    ["unsupported", "not supported", "unrecognized", "unknown", "not permitted", "not allowed"];

/// How a provider is told to answer, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseFormat {
    /// As text. The prompt contains the schema.
    Text,
    /// As any JSON object. The prompt contains the schema.
    JsonObject,
    /// As JSON of the schema, which the provider enforces.
    JsonSchema,
}

/// The optional features that a request uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFeatures {
    pub(crate) schema: bool,
    pub(crate) stream: bool,
}

impl Default for ProviderCapabilities {
    fn default() -> Self {
        Self {
            response_format: ResponseFormat::JsonSchema,
            stream_usage: true,
            max_completion_tokens: false,
            temperature: true,
        }
    }
}

impl ProviderCapabilities {
    /// The capabilities to try next after a refusal: without the feature that the error names, otherwise without the
    /// feature that the fewest providers support. `None` if no feature is left that could be the cause.
    pub(crate) fn downgrade(self, reported: &ProviderError, features: RequestFeatures) -> Option<Self> {
        let without_usage =
            (features.stream && self.stream_usage).then_some(Self { stream_usage: false, ..self });
        let weaker_format = self.with_weaker_format().filter(|_| features.schema);
        if reported.mentions(&["stream_options", "include_usage"]) && without_usage.is_some() {
            return without_usage;
        }
        let format_terms = ["response_format", "json_schema", "json_object", "grammar", "structured output"];
        if reported.mentions(&format_terms) && weaker_format.is_some() {
            return weaker_format;
        }
        // Only if the field is unknown, not if its value is refused: a provider that ignores the other field would get
        // no limit at all.
        let field_unknown =
            reported.mentions(&["max_tokens", "max_completion_tokens"]) && reported.mentions(&UNKNOWN_FIELD);
        if field_unknown && !self.max_completion_tokens {
            return Some(Self { max_completion_tokens: true, ..self });
        }
        if reported.mentions(&["temperature"]) && self.temperature {
            return Some(Self { temperature: false, ..self });
        }
        without_usage.or(weaker_format)
    }

    fn with_weaker_format(self) -> Option<Self> {
        let response_format = match self.response_format {
            ResponseFormat::JsonSchema => ResponseFormat::JsonObject,
            ResponseFormat::JsonObject => ResponseFormat::Text,
            ResponseFormat::Text => return None,
        };
        Some(Self { response_format, ..self })
    }

    /// The features that both support.
    pub(crate) fn intersect(self, other: Self) -> Self {
        Self {
            response_format: self.response_format.min(other.response_format),
            stream_usage: self.stream_usage && other.stream_usage,
            max_completion_tokens: self.max_completion_tokens || other.max_completion_tokens,
            temperature: self.temperature && other.temperature,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downgrades_end_after_few_steps() {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        for (schema, stream) in all {
            for text in
                ["", "max_tokens", "temperature", "json_schema", "stream_options", "max_tokens temperature"]
            {
                let reported = ProviderError::parse(text.as_bytes());
                let mut capabilities = Some(ProviderCapabilities::default());
                let steps = std::iter::from_fn(|| {
                    capabilities = capabilities?.downgrade(&reported, RequestFeatures { schema, stream });
                    capabilities
                });
                assert!(steps.take(10).count() < 6, "{text} {schema} {stream}");
            }
        }
    }

    #[test]
    fn downgrade_removes_the_feature_that_the_error_names() {
        let all = ProviderCapabilities::default();
        let features = RequestFeatures { schema: true, stream: true };
        let after = |text: &str| all.downgrade(&ProviderError::parse(text.as_bytes()), features).unwrap();
        assert!(after("Unsupported parameter: 'max_tokens'").max_completion_tokens);
        assert!(!after("max_tokens is too large: 99999").max_completion_tokens);
        assert!(!after("temperature does not support 0.2").temperature);
        assert_eq!(after("response_format is unknown").response_format, ResponseFormat::JsonObject);
        assert!(!after("no").stream_usage);
        assert_eq!(after("no").response_format, ResponseFormat::JsonSchema);
        let features = RequestFeatures { schema: false, stream: false };
        assert_eq!(all.downgrade(&ProviderError::default(), features), None, "no feature could be the cause");
    }
}
