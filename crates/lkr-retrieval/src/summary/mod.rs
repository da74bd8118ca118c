//! Summaries of results: written by a language model and held against the results, or picked from them.

mod extractive;
mod grounding;
mod orders;
mod prompt;
mod stream;
mod writing;

use extractive::extractive;
pub use stream::{SummaryPart, SummaryStream};
pub(crate) use writing::{Outcome, Part, Writer, replay};
