use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::Result;

/// The static properties of a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatProfile {
    /// The model's name. Summaries name it as their generator.
    pub name: String,
    /// The context window: the most tokens of a request and its answer together. The model refuses longer requests.
    pub context_tokens: usize,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The application, which sets the task.
    System,
    /// The user. Text of documents is sent in this role too; instructions in it must never be followed.
    User,
    /// The model.
    Assistant,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// The author.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// A request to a language model. The model gets no tools; it can only answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The conversation so far, oldest message first; at least one message.
    pub messages: Vec<ChatMessage>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// The sampling temperature, from 0 to 2.
    pub temperature: f32,
    /// The schema of the answer; `None` for plain text. A provider without schema support only gets the schema as part
    /// of the prompt, so the caller must validate the answer in any case.
    pub schema: Option<AnswerSchema>,
}

/// The JSON schema of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// The schema's name: 1 to 64 characters of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// The schema of an object in which every property is required and no other property is allowed. The model writes
    /// the properties in the order of `required`, so the most important one belongs first.
    pub schema: serde_json::Value,
}

/// The complete answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The text.
    pub text: String,
    /// Why the answer ended.
    pub finish_reason: FinishReason,
    /// The tokens used.
    pub usage: TokenUsage,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The answer reached the requested maximum or the model's own limit of tokens.
    Length,
    /// The provider withheld the rest of the answer.
    ContentFilter,
}

/// The tokens that calls used, as counted by the provider; 0 if the provider does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the requests.
    pub prompt: u64,
    /// Tokens of the answers.
    pub answer: u64,
}

/// A part of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatPart {
    /// The next piece of the text; not empty.
    Text(String),
    /// The complete answer; always the last part.
    End(ChatAnswer),
}

/// The parts of an answer as they arrive. Nothing follows an error. Dropping the stream cancels the call.
pub type ChatStream = BoxStream<'static, Result<ChatPart>>;

/// A language model.
///
/// Every future and stream is safe to drop at any await point.
///
/// # Errors
/// `Throttled` if the provider limits the rate of calls, `Unavailable` if it does not answer, `Config` if it is
/// misconfigured (a wrong key, an unknown model), `TooLarge` if the request exceeds its limit, `Input` if it refuses the
/// request for another reason, `Internal` if its answer is unreadable or broken off.
#[async_trait]
pub trait ChatModel: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &ChatProfile;

    /// Answers `request` in one piece.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer>;

    /// Streams the answer to `request`. Returns once the provider has accepted the request.
    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream>;
}

/// The purpose of a call of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatPurpose {
    /// Summaries and keywords of documents, and summaries of search results.
    Summarize,
    /// Choosing a document's category.
    Classify,
}

/// Provides the configured language model, which may change between requests.
#[async_trait]
pub trait ChatModelSource: Debug + Send + Sync + 'static {
    /// The model configured for a purpose; `None` if none is configured.
    ///
    /// # Errors
    /// If a model is configured but cannot be created.
    async fn chat_model(&self, purpose: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>>;
}

/// A source with one fixed model for every purpose.
#[async_trait]
impl ChatModelSource for Arc<dyn ChatModel> {
    async fn chat_model(&self, _: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>> {
        Ok(Some(Self::clone(self)))
    }
}

impl ChatMessage {
    /// A message of the application.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self { role: Role::System, text: text.into() }
    }

    /// A message of the user.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into() }
    }

    /// An earlier answer of the model.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into() }
    }
}

impl TokenUsage {
    /// Prompt and answer tokens together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.prompt.saturating_add(self.answer)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, more: Self) {
        self.prompt = self.prompt.saturating_add(more.prompt);
        self.answer = self.answer.saturating_add(more.answer);
    }
}
