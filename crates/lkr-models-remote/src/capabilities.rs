//! In which manner a provider wants to be asked.

use crate::said::Said;

/// In which manner a provider is asked: everything that was published, less what it refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderCapabilities {
    /// To what its answers are held, where a schema is asked for.
    pub held: ResponseFormat,
    /// Whether it is asked what a stream cost.
    pub stream_usage: bool,
    /// Whether the number of tokens is called `max_completion_tokens`, and not `max_tokens`.
    pub completion_tokens: bool,
    /// Whether it is told how freely to choose its words.
    pub temperature: bool,
}

/// How providers say that they do not know a field.
const UNKNOWN: [&str; 6] =
    ["unsupported", "not supported", "unrecognized", "unknown", "not permitted", "not allowed"];

/// To what an answer is held by the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseFormat {
    /// To nothing: it is asked for in words.
    Nothing,
    /// To be JSON; the schema is asked for in words.
    Json,
    /// To the schema.
    Schema,
}

/// What of a manner a request makes use of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uses {
    pub(crate) schema: bool,
    pub(crate) stream: bool,
}

impl Default for ProviderCapabilities {
    fn default() -> Self {
        Self { held: ResponseFormat::Schema, stream_usage: true, completion_tokens: false, temperature: true }
    }
}

impl ProviderCapabilities {
    /// The manner to try after a refusal of this one: without what was named, else without what few know. `None` where
    /// the request itself must be at fault.
    pub(crate) fn after(self, said: &Said, uses: Uses) -> Option<Self> {
        let usage = (uses.stream && self.stream_usage).then_some(Self { stream_usage: false, ..self });
        let held = self.less_held().filter(|_| uses.schema);
        if said.mentions(&["stream_options", "include_usage"]) && usage.is_some() {
            return usage;
        }
        if said.mentions(&["response_format", "json_schema", "json_object", "grammar", "structured output"])
            && held.is_some()
        {
            return held;
        }
        // Not where the number is what is refused: who does not know the other name would set no bound at all.
        let named = said.mentions(&["max_tokens", "max_completion_tokens"]) && said.mentions(&UNKNOWN);
        if named && !self.completion_tokens {
            return Some(Self { completion_tokens: true, ..self });
        }
        if said.mentions(&["temperature"]) && self.temperature {
            return Some(Self { temperature: false, ..self });
        }
        usage.or(held)
    }

    fn less_held(self) -> Option<Self> {
        match self.held {
            ResponseFormat::Schema => Some(Self { held: ResponseFormat::Json, ..self }),
            ResponseFormat::Json => Some(Self { held: ResponseFormat::Nothing, ..self }),
            ResponseFormat::Nothing => None,
        }
    }

    /// What is left of both: what one of them found to be refused is.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            held: self.held.min(other.held),
            stream_usage: self.stream_usage && other.stream_usage,
            completion_tokens: self.completion_tokens || other.completion_tokens,
            temperature: self.temperature && other.temperature,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_down_comes_to_an_end() {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        for (schema, stream) in all {
            for text in
                ["", "max_tokens", "temperature", "json_schema", "stream_options", "max_tokens temperature"]
            {
                let said = Said::read(text.as_bytes());
                let mut manner = Some(ProviderCapabilities::default());
                let steps = std::iter::from_fn(|| {
                    manner = manner?.after(&said, Uses { schema, stream });
                    manner
                });
                assert!(steps.take(10).count() < 6, "{text} {schema} {stream}");
            }
        }
    }

    #[test]
    fn what_is_named_goes_first() {
        let uses = Uses { schema: true, stream: true };
        let after =
            |text: &str| ProviderCapabilities::default().after(&Said::read(text.as_bytes()), uses).unwrap();
        assert!(after("Unsupported parameter: 'max_tokens'").completion_tokens);
        assert!(!after("max_tokens is too large: 99999").completion_tokens);
        assert!(!after("temperature does not support 0.2").temperature);
        assert_eq!(after("response_format is unknown").held, ResponseFormat::Json);
        assert!(!after("no").stream_usage && after("no").held == ResponseFormat::Schema);
        let plain =
            ProviderCapabilities::default().after(&Said::default(), Uses { schema: false, stream: false });
        assert_eq!(plain, None, "the request itself is at fault");
    }
}
