//! Reading the streamed answer of a language model.

use futures_util::StreamExt;
use lkr_models::{ChatModel, ChatPart, ChatRequest, FinishReason};
use tokio::sync::mpsc::Sender;

use crate::{
    blocking::blocking,
    summary::{event::SummaryEvent, grounding::Grounding, model_deadline::ModelDeadline},
};

/// An answer whose grounded sentences are sent as they arrive.
#[derive(Debug)]
pub(super) struct AnswerReading<'a> {
    /// `None` after a panic.
    pub(super) grounding: Option<Grounding>,
    /// Whether any text was sent.
    pub(super) text_sent: bool,
    pub(super) sender: &'a Sender<SummaryEvent>,
}

impl AnswerReading<'_> {
    /// Reads the answer to its end.
    ///
    /// # Errors
    /// The model's error; `None` if the model timed out or the stream ended without its last part.
    pub(super) async fn read(
        &mut self,
        model: &dyn ChatModel,
        request: &ChatRequest,
        deadline: &ModelDeadline,
    ) -> Result<FinishReason, Option<lkr_models::Error>> {
        let started = deadline.wait_for(model.stream(request)).await;
        let mut answer = started.ok_or(None)?.map_err(Some)?;
        loop {
            let part = deadline.wait_for(answer.next()).await;
            match part.flatten().ok_or(None)?.map_err(Some)? {
                ChatPart::End(answer) => return Ok(answer.finish_reason),
                ChatPart::Text(text) => self.push(text).await.ok_or(None)?,
            }
        }
    }

    /// Examines the next piece on a thread that may block, because a long one takes milliseconds. `None` if that panicked.
    async fn push(&mut self, text: String) -> Option<()> {
        let mut grounding = self.grounding.take()?;
        let examined = blocking(move || {
            let grounded = grounding.push(&text);
            (grounding, grounded)
        });
        let (grounding, grounded) = examined.await.ok()?;
        self.grounding = Some(grounding);
        if !grounded.is_empty() {
            self.text_sent = true;
            // Sending fails only if the reader is gone, which then needs no parts.
            let _ = self.sender.send(SummaryEvent::Text(grounded)).await;
        }
        Some(())
    }
}
