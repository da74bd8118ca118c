//! Answers that come in parts.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{StreamExt, stream};
use lkr_models::{ChatAnswer, ChatPart, ChatStream, Error, FinishReason, Result, TokenUsage};
use lkr_outgoing::{Response, header::CONTENT_TYPE};

use crate::{chat::whole, error, provider::Provider, sse::Events, thoughts::Thoughts, wire::Answer};

/// What ends a stream.
const DONE: &str = "[DONE]";

/// The parts of an answer. One that comes as a whole, whatever was asked for, is a single part.
pub(crate) async fn in_parts(response: Response, provider: Arc<Provider>) -> Result<ChatStream> {
    let media = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media.starts_with("application/json") {
        let bytes = response.bytes().await.map_err(error::unanswered)?;
        let answer = whole(read(&bytes)?, &provider)?;
        let text = Some(answer.text.clone()).filter(|text| !text.is_empty()).map(ChatPart::Text);
        return Ok(stream::iter(text.into_iter().chain([ChatPart::End(answer)]).map(Ok)).boxed());
    }
    let parts = Parts {
        response,
        provider,
        events: Events::default(),
        ready: VecDeque::new(),
        failure: None,
        thoughts: Thoughts::default(),
        text: String::new(),
        end: None,
        usage: TokenUsage::default(),
        done: false,
    };
    Ok(stream::try_unfold(parts, Parts::next).boxed())
}

struct Parts {
    response: Response,
    provider: Arc<Provider>,
    events: Events,
    /// What came and was not asked for yet.
    ready: VecDeque<ChatPart>,
    /// What happened after it.
    failure: Option<Error>,
    thoughts: Thoughts,
    text: String,
    end: Option<FinishReason>,
    usage: TokenUsage,
    /// Whether the last part has come.
    done: bool,
}

impl Parts {
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
            let read = self.response.chunk().await;
            let taken = match read {
                Ok(Some(bytes)) => self.events.push(&bytes).and_then(|events| self.take(&events)),
                Ok(None) => self.broke_off(error::wrong_answer("it ends before it is whole")),
                Err(error) => self.broke_off(error::unanswered(error)),
            };
            self.failure = taken.err();
        }
    }

    /// Whatever happens after the answer's end does it no harm.
    fn broke_off(&mut self, error: Error) -> Result<()> {
        if self.end.is_none() {
            return Err(error);
        }
        self.finish();
        Ok(())
    }

    fn take(&mut self, events: &[String]) -> Result<()> {
        for data in events {
            if self.done {
                break;
            }
            if data.trim() == DONE {
                self.finish();
            } else {
                self.add(read(data.as_bytes())?)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, answer: Answer) -> Result<()> {
        if let Some(error) = answer.error.filter(|error| !error.is_null()) {
            return Err(self.provider.refused_within(&error));
        }
        if let Some(usage) = &answer.usage {
            self.usage = usage.into();
        }
        let Some(mut first) = answer.choices.into_iter().next() else { return Ok(()) };
        let text = self.thoughts.push(&first.text());
        if !text.is_empty() {
            self.text.push_str(&text);
            self.ready.push_back(ChatPart::Text(text));
        }
        self.end = first.end().or(self.end);
        Ok(())
    }

    fn finish(&mut self) {
        self.done = true;
        let rest = self.thoughts.rest();
        if !rest.is_empty() {
            self.text.push_str(&rest);
            self.ready.push_back(ChatPart::Text(rest));
        }
        let (text, finish_reason) = (std::mem::take(&mut self.text), self.end.unwrap_or(FinishReason::Stop));
        self.ready.push_back(ChatPart::End(ChatAnswer { text, finish_reason, usage: self.usage }));
    }
}

fn read(bytes: &[u8]) -> Result<Answer> {
    serde_json::from_slice(bytes).map_err(|_| error::wrong_answer("it is none of the JSON that is expected"))
}
