use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::{
    AnswerEnd, ChatAnswer, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, Result, TokenUsage,
};

type Script = dyn Fn(&ChatRequest) -> Result<String> + Send + Sync;

/// A language model that answers what a function says, and keeps what it was asked. A token is a word.
///
/// Meant for tests and examples.
#[derive(Clone)]
pub struct ScriptedChat {
    profile: ChatProfile,
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
}

impl ScriptedChat {
    /// The model that answers what `script` says.
    pub fn new(script: impl Fn(&ChatRequest) -> Result<String> + Send + Sync + 'static) -> Self {
        let profile = ChatProfile { name: "scripted".to_owned(), context_tokens: 8_192 };
        Self { profile, script: Arc::new(script), asked: Arc::default() }
    }

    /// What it was asked so far, in that order.
    #[must_use]
    pub fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let whole = (self.script)(request)?;
        let most = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
        let text: String = whole.split_inclusive(char::is_whitespace).take(most).collect();
        let end = if text.len() < whole.len() { AnswerEnd::Cut } else { AnswerEnd::Whole };
        let prompt = request.messages.iter().map(|message| words(&message.text)).sum();
        let usage = TokenUsage { prompt, answer: words(&text) };
        Ok(ChatAnswer { text, end, usage })
    }
}

fn words(text: &str) -> u64 {
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

    async fn parrot() -> (Arc<dyn ChatModel>, ()) {
        (Arc::new(ScriptedChat::new(|request| Ok(request.messages.last().unwrap().text.clone()))), ())
    }

    crate::chat_suite!(parrot());

    fn request(text: &str, max_tokens: u32) -> ChatRequest {
        ChatRequest { messages: vec![ChatMessage::user(text)], max_tokens, temperature: 0.0, schema: None }
    }

    #[tokio::test]
    async fn it_answers_what_the_script_says() {
        let model = ScriptedChat::new(|request| match request.messages[0].text.as_str() {
            "fail" => Err(Error::new(ErrorKind::Unavailable, "ask", "it is away")),
            text => Ok(format!("you said {text}")),
        });
        let answer = model.complete(&request("two words", 10)).await.unwrap();
        let usage = TokenUsage { prompt: 2, answer: 4 };
        assert_eq!(answer, ChatAnswer { text: "you said two words".into(), end: AnswerEnd::Whole, usage });
        let parts: Vec<_> =
            model.stream(&request("two words", 3)).await.unwrap().map(|part| part.unwrap()).collect().await;
        let text = |text: &str| ChatPart::Text(text.to_owned());
        assert_eq!(parts[..3], [text("you "), text("said "), text("two ")]);
        let ChatPart::End(answer) = &parts[3] else { panic!("{parts:?}") };
        assert_eq!(
            (answer.text.as_str(), answer.end, answer.usage.total()),
            ("you said two ", AnswerEnd::Cut, 5)
        );
        assert_eq!(model.complete(&request("fail", 3)).await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(model.asked().len(), 3);
    }
}
