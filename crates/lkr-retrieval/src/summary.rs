//! Summaries of results: written by a language model and grounded in the results, or extractive.

mod answer_reading;
mod event;
mod extractive;
mod grounding;
mod injection;
mod markers;
mod model_deadline;
mod prompt;
mod stream;
mod summarizer;

pub(crate) use event::{FinishedSummary, SummaryEvent};
pub use stream::{SummaryPart, SummaryStream};
pub(crate) use summarizer::{Summarizer, replay};
