//! Streamed answers.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{StreamExt, stream};
use lkr_models::{ChatAnswer, ChatPart, ChatStream, Error, FinishReason, Result, TokenUsage};
use lkr_outgoing::{Response, header::CONTENT_TYPE};

use crate::{
    chat::complete_answer, error, provider::Provider, reasoning::ReasoningFilter, sse::SseDecoder,
    wire::CompletionResponse,
};

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// The parts of an answer. If the provider does not stream, the text is a single part.
pub(crate) async fn answer_stream(response: Response, provider: Arc<Provider>) -> Result<ChatStream> {
    let media_type =
        response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media_type.starts_with("application/json") {
        let bytes = response.bytes().await.map_err(error::no_response)?;
        let response = parse(&bytes)?.ok_or_else(error::unexpected_json)?;
        let answer = complete_answer(response, &provider)?;
        let text = Some(answer.text.clone()).filter(|text| !text.is_empty()).map(ChatPart::Text);
        return Ok(stream::iter(text.into_iter().chain([ChatPart::End(answer)]).map(Ok)).boxed());
    }
    let reader = StreamReader {
        response,
        provider,
        decoder: SseDecoder::default(),
        ready: VecDeque::new(),
        failure: None,
        reasoning: ReasoningFilter::default(),
        text: String::new(),
        finish_reason: None,
        usage: TokenUsage::default(),
        done: false,
    };
    Ok(stream::try_unfold(reader, StreamReader::next).boxed())
}

struct StreamReader {
    response: Response,
    provider: Arc<Provider>,
    decoder: SseDecoder,
    /// Parts that were received and not yet returned.
    ready: VecDeque<ChatPart>,
    /// A failure that is returned after the parts in `ready`.
    failure: Option<Error>,
    reasoning: ReasoningFilter,
    text: String,
    finish_reason: Option<FinishReason>,
    usage: TokenUsage,
    /// Whether the last part was received.
    done: bool,
}

impl StreamReader {
    async fn next(mut self) -> Result<Option<(ChatPart, Self)>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some((part, self)));
            }
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            if self.done {
                return Ok(None);
            }
            let chunk = self.response.chunk().await;
            let result = match chunk {
                Ok(Some(bytes)) => self.decoder.push(&bytes).and_then(|events| self.handle_events(&events)),
                Ok(None) => self.handle_break(error::invalid_response("the stream ended before the answer")),
                Err(error) => self.handle_break(error::no_response(error)),
            };
            self.failure = result.err();
        }
    }

    /// A broken connection is an error only if the answer is incomplete.
    fn handle_break(&mut self, error: Error) -> Result<()> {
        if self.finish_reason.is_none() {
            return Err(error);
        }
        self.finish();
        Ok(())
    }

    fn handle_events(&mut self, events: &[String]) -> Result<()> {
        for data in events {
            if self.done {
                break;
            }
            if data.trim() == DONE {
                self.finish();
            } else if let Some(chunk) = parse(data.as_bytes())? {
                self.handle_chunk(chunk)?;
            }
        }
        Ok(())
    }

    fn handle_chunk(&mut self, chunk: CompletionResponse) -> Result<()> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(self.provider.error_in_success(&error));
        }
        if let Some(usage) = &chunk.usage {
            self.usage = usage.into();
        }
        let Some(mut first) = chunk.choices.into_iter().next() else { return Ok(()) };
        let text = self.reasoning.push(&first.take_text());
        if !text.is_empty() {
            self.text.push_str(&text);
            self.ready.push_back(ChatPart::Text(text));
        }
        self.finish_reason = first.finish_reason().or(self.finish_reason);
        Ok(())
    }

    fn finish(&mut self) {
        self.done = true;
        let rest = self.reasoning.finish();
        if !rest.is_empty() {
            self.text.push_str(&rest);
            self.ready.push_back(ChatPart::Text(rest));
        }
        let text = std::mem::take(&mut self.text);
        let finish_reason = self.finish_reason.unwrap_or(FinishReason::Stop);
        self.ready.push_back(ChatPart::End(ChatAnswer { text, finish_reason, usage: self.usage }));
    }
}

/// A response or a chunk; `None` for `null`, which some gateways send between chunks.
fn parse(bytes: &[u8]) -> Result<Option<CompletionResponse>> {
    serde_json::from_slice(bytes).map_err(|_| error::unexpected_json())
}
