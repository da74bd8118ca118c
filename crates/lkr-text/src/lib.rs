#![doc = include_str!("../README.md")]

mod analyze;
mod chars;
mod compound;
mod detect;
mod document_terms;
mod estimate;
mod fold;
mod grounding;
mod highlight;
mod language;
mod literal;
mod overlap;
mod prefilter;
mod prompt_tokens;
mod query;
mod sentence;
mod stem;
mod stop;
mod word;

pub use analyze::{Analyzer, Token};
pub use detect::detect;
pub use document_terms::DocumentTerms;
pub use estimate::{estimate_tokens, first_tokens, token_costs};
pub use grounding::{is_supported, support, without_foreign_links};
pub use highlight::{Highlighter, highlights};
pub use language::Language;
pub use literal::{LiteralMatches, Literals};
pub use overlap::{Overlap, QueryWords, overlap};
pub use prompt_tokens::prompt_tokens;
pub use query::{QueryTerm, consists_of_stop_words, query_terms};
pub use sentence::{MAX_SENTENCE_CHARS, sentences};
pub use stop::is_stop_word;
pub use word::words;
