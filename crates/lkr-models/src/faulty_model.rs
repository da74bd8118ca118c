//! A model with scripted failures, for the tests of the decorators.

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

/// Answers "one two three", or vectors, after a delay; fails with the scripted errors; and records its calls.
#[derive(Debug)]
pub(crate) struct FaultyModel {
    chat: ScriptedChat,
    embedder: MemoryEmbedder,
    delay: Duration,
    failures: Mutex<Vec<ErrorKind>>,
    /// The number of parts after which a failing stream breaks; `None` if it fails before it begins.
    parts_before_failure: Option<usize>,
    call_times: Mutex<Vec<Instant>>,
    kinds: Mutex<Vec<EmbedKind>>,
    running: AtomicUsize,
    max_running: AtomicUsize,
}

struct RunningGuard<'a>(&'a AtomicUsize);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FaultyModel {
    /// A model whose first calls fail with `failures`, in this order.
    pub(crate) fn failing<const N: usize>(failures: [ErrorKind; N]) -> Arc<Self> {
        Arc::new(Self::with(&failures))
    }

    /// A model whose first streams break with `failures` after `parts` parts.
    pub(crate) fn breaking_after<const N: usize>(parts: usize, failures: [ErrorKind; N]) -> Arc<Self> {
        Arc::new(Self { parts_before_failure: Some(parts), ..Self::with(&failures) })
    }

    /// A model that takes `delay` for each call.
    pub(crate) fn delayed(delay: Duration) -> Arc<Self> {
        Arc::new(Self { delay, ..Self::with(&[]) })
    }

    fn with(failures: &[ErrorKind]) -> Self {
        Self {
            chat: ScriptedChat::new(|_| Ok("one two three".to_owned())),
            embedder: MemoryEmbedder::new(),
            delay: Duration::ZERO,
            failures: Mutex::new(failures.iter().rev().copied().collect()),
            parts_before_failure: None,
            call_times: Mutex::default(),
            kinds: Mutex::default(),
            running: AtomicUsize::new(0),
            max_running: AtomicUsize::new(0),
        }
    }

    /// Makes the next call fail.
    pub(crate) fn fail(&self, kind: ErrorKind) {
        self.failures.lock().unwrap().push(kind);
    }

    /// When each call began.
    pub(crate) fn call_times(&self) -> Vec<Instant> {
        self.call_times.lock().unwrap().clone()
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.call_times.lock().unwrap().len()
    }

    /// The kind of each embedding, oldest first.
    pub(crate) fn kinds(&self) -> Vec<EmbedKind> {
        self.kinds.lock().unwrap().clone()
    }

    /// The largest number of calls that ran at once.
    pub(crate) fn max_running(&self) -> usize {
        self.max_running.load(Ordering::SeqCst)
    }

    async fn record_call(&self) -> Option<Error> {
        self.call_times.lock().unwrap().push(Instant::now());
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _guard = RunningGuard(&self.running);
        self.max_running.fetch_max(running, Ordering::SeqCst);
        sleep(self.delay).await;
        let kind = self.failures.lock().unwrap().pop()?;
        Some(Error::new(kind, "call", "scripted failure"))
    }
}

#[async_trait]
impl ChatModel for FaultyModel {
    fn profile(&self) -> &ChatProfile {
        self.chat.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        match self.record_call().await {
            Some(error) => Err(error),
            None => self.chat.complete(request).await,
        }
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let failure = self.record_call().await;
        match (failure, self.parts_before_failure) {
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
impl Embedder for FaultyModel {
    fn profile(&self) -> &EmbedderProfile {
        self.embedder.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let failure = self.record_call().await;
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

/// The text of a stream, or the error that breaks it.
pub(crate) async fn text_of(parts: ChatStream) -> Result<String> {
    let parts: Vec<ChatPart> = parts.try_collect().await?;
    let text = parts.iter().map(|part| match part {
        ChatPart::Text(text) => text.as_str(),
        ChatPart::End(_) => "",
    });
    Ok(text.collect())
}
