use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::Result;

/// What is known of a language model without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatProfile {
    /// The model's name: what a summary says that it was made by.
    pub name: String,
    /// How many tokens a request and its answer may have together; what is too long is refused by the model.
    pub context_tokens: usize,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Whoever sets the task.
    System,
    /// Whoever asks; what documents say stands here too, and is never to be obeyed.
    User,
    /// The model.
    Assistant,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// What a model is asked for. It has no tools: all that it can do is to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// What was said so far, in its order; at least one.
    pub messages: Vec<ChatMessage>,
    /// How many tokens its answer may have.
    pub max_tokens: u32,
    /// How freely it chooses its words, from 0 to 2.
    pub temperature: f32,
    /// What the answer has to look like; `None` for plain text. A model that cannot be held to it is asked for it in
    /// words, so that who asks checks the answer all the same.
    pub schema: Option<AnswerSchema>,
}

/// What an answer has to look like: JSON of this schema.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// Its name: 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// A JSON schema, of an object, all of whose properties are required and which has no others. They are written in
    /// the order of `required`, so that what matters most comes first.
    pub schema: serde_json::Value,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// What it says.
    pub text: String,
    /// Why it ends there.
    pub end: AnswerEnd,
    /// What it cost.
    pub usage: TokenUsage,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// All is said.
    Whole,
    /// It has as many tokens as it may have, or as the model can give.
    Cut,
    /// The provider keeps the rest to itself.
    Withheld,
}

/// What calls cost, in tokens as the provider counts them; 0 where it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Those of what was sent.
    pub prompt: u64,
    /// Those of what was answered.
    pub answer: u64,
}

/// A part of an answer that comes in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatPart {
    /// What the text goes on with; not empty.
    Text(String),
    /// The whole answer, always the last part.
    End(ChatAnswer),
}

/// The parts of an answer as they come. After an error nothing follows; dropping it ends the call.
pub type ChatStream = BoxStream<'static, Result<ChatPart>>;

/// A language model.
///
/// Every future and stream may be dropped at any await.
///
/// # Errors
/// `Throttled` where it asks to be asked less, `Unavailable` where it is away, `Config` where it is set up wrongly (a
/// wrong key, an unknown model), `TooLarge` where the request is longer than it takes, `Input` where it refuses the
/// request otherwise, `Internal` where what it answers cannot be read or is cut off.
#[async_trait]
pub trait ChatModel: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &ChatProfile;

    /// The answer to `request`, as a whole.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer>;

    /// The answer to `request` as it comes; the stream begins when the model has taken the request.
    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream>;
}

/// What a language model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatPurpose {
    /// Summaries and keywords, of documents and of search results.
    Summarize,
    /// Choosing a document's category.
    Classify,
}

/// Names the language model in force, which may be another one from one request to the next.
#[async_trait]
pub trait ChatModelSource: Debug + Send + Sync + 'static {
    /// The model in force for a purpose; `None` where there is none.
    ///
    /// # Errors
    /// Where one is meant to be there and cannot be had.
    async fn chat_model(&self, purpose: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>>;
}

/// A model that stays, for every purpose.
#[async_trait]
impl ChatModelSource for Arc<dyn ChatModel> {
    async fn chat_model(&self, _: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>> {
        Ok(Some(Self::clone(self)))
    }
}

impl ChatMessage {
    /// What whoever sets the task says.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self { role: Role::System, text: text.into() }
    }

    /// What whoever asks says.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into() }
    }

    /// What the model said.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into() }
    }
}

impl TokenUsage {
    /// Both together.
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
