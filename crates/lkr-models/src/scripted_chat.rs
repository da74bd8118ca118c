use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::{
    ChatAnswer, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, FinishReason, Result, TokenUsage,
};

type Script = dyn Fn(&ChatRequest) -> Result<String> + Send + Sync;

/// A language model that answers with the result of a function and records its requests. A token is a word.
///
/// For tests and examples.
#[derive(Clone)]
pub struct ScriptedChat {
    profile: ChatProfile,
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<ChatRequest>>>,
}

impl ScriptedChat {
    /// A model that answers with the result of `script`.
    pub fn new(script: impl Fn(&ChatRequest) -> Result<String> + Send + Sync + 'static) -> Self {
        let profile = ChatProfile { name: "scripted".to_owned(), context_tokens: 8_192 };
        Self { profile, script: Arc::new(script), requests: Arc::default() }
    }

    /// The requests received so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let complete = (self.script)(request)?;
        let max_words = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
        let text: String = complete.split_inclusive(char::is_whitespace).take(max_words).collect();
        let finish_reason =
            if text.len() < complete.len() { FinishReason::Length } else { FinishReason::Stop };
        let prompt = request.messages.iter().map(|message| count_words(&message.text)).sum();
        let usage = TokenUsage { prompt, answer: count_words(&text) };
        Ok(ChatAnswer { text, finish_reason, usage })
    }
}

fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

impl fmt::Debug for ScriptedChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedChat").field("profile", &self.profile).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for ScriptedChat {
    fn profile(&self) -> &ChatProfile {
        &self.profile
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.answer(request)
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let answer = self.answer(request)?;
        let words = answer.text.split_inclusive(char::is_whitespace).map(str::to_owned);
        let parts: Vec<_> =
            words.map(ChatPart::Text).chain([ChatPart::End(answer.clone())]).map(Ok).collect();
        Ok(stream::iter(parts).boxed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatMessage, Error, ErrorKind};

    async fn echo_model() -> (Arc<dyn ChatModel>, ()) {
        (Arc::new(ScriptedChat::new(|request| Ok(request.messages.last().unwrap().text.clone()))), ())
    }

    crate::chat_suite!(echo_model());

    fn request(text: &str, max_tokens: u32) -> ChatRequest {
        ChatRequest { messages: vec![ChatMessage::user(text)], max_tokens, temperature: 0.0, schema: None }
    }

    #[tokio::test]
    async fn scripted_model_answers_and_records_requests() {
        let model = ScriptedChat::new(|request| match request.messages[0].text.as_str() {
            "fail" => Err(Error::new(ErrorKind::Unavailable, "complete", "scripted failure")),
            text => Ok(format!("you said {text}")),
        });
        let answer = model.complete(&request("two words", 10)).await.unwrap();
        let usage = TokenUsage { prompt: 2, answer: 4 };
        assert_eq!(
            answer,
            ChatAnswer { text: "you said two words".into(), finish_reason: FinishReason::Stop, usage }
        );
        let parts: Vec<_> =
            model.stream(&request("two words", 3)).await.unwrap().map(|part| part.unwrap()).collect().await;
        let text = |text: &str| ChatPart::Text(text.to_owned());
        assert_eq!(parts[..3], [text("you "), text("said "), text("two ")]);
        let ChatPart::End(answer) = &parts[3] else { panic!("{parts:?}") };
        assert_eq!(
            (answer.text.as_str(), answer.finish_reason, answer.usage.total()),
            ("you said two ", FinishReason::Length, 5)
        );
        assert_eq!(model.complete(&request("fail", 3)).await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(model.requests().len(), 3);
    }
}
