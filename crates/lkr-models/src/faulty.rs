//! A model for the tests of what stands around models.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, sleep};

use crate::{
    ChatAnswer, ChatMessage, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder,
    EmbedderProfile, Error, ErrorKind, MemoryEmbedder, Result, ScriptedChat,
};

/// Answers "one two three" and vectors after a while, or fails as it is told; and remembers when it was asked.
#[derive(Debug)]
pub(crate) struct Faulty {
    chat: ScriptedChat,
    embedder: MemoryEmbedder,
    takes: Duration,
    failures: Mutex<Vec<ErrorKind>>,
    /// Streams fail after so many parts and not before.
    parts: Option<usize>,
    asked: Mutex<Vec<Instant>>,
    kinds: Mutex<Vec<EmbedKind>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Faulty {
    /// One that fails so, one time after the other, and then no more.
    pub(crate) fn failing<const N: usize>(failures: [ErrorKind; N]) -> Arc<Self> {
        Arc::new(Self::with(&failures))
    }

    /// One whose streams fail after so many parts.
    pub(crate) fn breaking_after<const N: usize>(parts: usize, failures: [ErrorKind; N]) -> Arc<Self> {
        Arc::new(Self { parts: Some(parts), ..Self::with(&failures) })
    }

    /// One that takes its time.
    pub(crate) fn taking(takes: Duration) -> Arc<Self> {
        Arc::new(Self { takes, ..Self::with(&[]) })
    }

    fn with(failures: &[ErrorKind]) -> Self {
        Self {
            chat: ScriptedChat::new(|_| Ok("one two three".to_owned())),
            embedder: MemoryEmbedder::new(),
            takes: Duration::ZERO,
            failures: Mutex::new(failures.iter().rev().copied().collect()),
            parts: None,
            asked: Mutex::default(),
            kinds: Mutex::default(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    pub(crate) fn fail(&self, kind: ErrorKind) {
        self.failures.lock().unwrap().push(kind);
    }

    /// When it was asked.
    pub(crate) fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }

    /// For what it embedded, in that order.
    pub(crate) fn kinds(&self) -> Vec<EmbedKind> {
        self.kinds.lock().unwrap().clone()
    }

    /// The most calls that ran at once.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    async fn ask(&self) -> Option<Error> {
        self.asked.lock().unwrap().push(Instant::now());
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        self.most.fetch_max(now, Ordering::SeqCst);
        sleep(self.takes).await;
        let kind = self.failures.lock().unwrap().pop()?;
        Some(Error::new(kind, "ask", "told to fail"))
    }
}

#[async_trait]
impl ChatModel for Faulty {
    fn profile(&self) -> &ChatProfile {
        self.chat.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        match self.ask().await {
            Some(error) => Err(error),
            None => self.chat.complete(request).await,
        }
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let failure = self.ask().await;
        match (failure, self.parts) {
            (None, _) => self.chat.stream(request).await,
            (Some(error), None) => Err(error),
            (Some(error), Some(parts)) => {
                let parts = self.chat.stream(request).await?.take(parts);
                Ok(parts.chain(stream::once(async { Err(error) })).boxed())
            }
        }
    }
}

#[async_trait]
impl Embedder for Faulty {
    fn profile(&self) -> &EmbedderProfile {
        self.embedder.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let failure = self.ask().await;
        self.kinds.lock().unwrap().push(kind);
        match failure {
            Some(error) => Err(error),
            None => self.embedder.embed(kind, texts).await,
        }
    }

    fn letters_per_piece(&self, _: &str) -> Option<f32> {
        None
    }
}

pub(crate) fn request() -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::user("count")], max_tokens: 9, temperature: 0.0, schema: None }
}

/// What a stream says, where it comes to its end.
pub(crate) async fn text_of(parts: ChatStream) -> Result<String> {
    let parts: Vec<ChatPart> = parts.try_collect().await?;
    let text = parts.iter().map(|part| match part {
        ChatPart::Text(text) => text.as_str(),
        ChatPart::End(_) => "",
    });
    Ok(text.collect())
}
