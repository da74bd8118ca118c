//! Summaries of results: written by a language model and grounded in the results, or extractive.

mod extractive;
mod grounding;
mod injection;
mod markers;
mod prompt;
mod stream;
mod summarizer;

pub use stream::{SummaryPart, SummaryStream};
pub(crate) use summarizer::{FinishedSummary, Summarizer, SummaryEvent, replay};
