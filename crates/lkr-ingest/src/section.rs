//! A part of a document that a language model describes, and the checked description.

use lkr_domain::{Layer, hex};
use lkr_text::{estimate_tokens, is_supported, sentences, without_foreign_links};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A text below this many tokens is its own best summary. See docs/studies.md#grounding.
const MIN_TOKENS: usize = 60;
/// The share of a sentence's words that must occur in the described text: summaries paraphrase, but not entirely. See
/// docs/studies.md#grounding.
const MIN_SUPPORT: f64 = 0.3;
/// The share of a keyword's words that must occur in the described text. See docs/studies.md#grounding.
const MIN_KEYWORD_SUPPORT: f64 = 0.5;
/// The longest summary of a node, in code points.
const MAX_NODE_CHARS: usize = 600;
/// The longest summary of a document, in code points.
const MAX_DOCUMENT_CHARS: usize = 1_200;
/// The most keywords, and the longest keyword in code points.
const MAX_KEYWORDS: usize = 12;
const MAX_KEYWORD_CHARS: usize = 60;

/// A section, or the whole document, as it is shown to the model.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// L2 for a section, L1 for the document.
    pub(crate) layer: Layer,
    pub(crate) ordinal: u32,
    /// The document's title and the headings that lead to the section.
    pub(crate) heading: String,
    /// Its subsections and passages; of the document, its sections.
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) ordinal: u32,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// A model's description of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) summary: String,
    /// The summary of each part, in order; empty where none is supported by the text.
    #[serde(default)]
    pub(crate) parts: Vec<String>,
    /// Keywords of the whole section.
    #[serde(default)]
    pub(crate) keywords: Vec<String>,
}

/// A description with the nodes that it belongs to.
#[derive(Debug)]
pub(crate) struct SectionSummary {
    pub(crate) layer: Layer,
    pub(crate) ordinal: u32,
    pub(crate) description: Description,
    /// The ordinals of the parts.
    pub(crate) parts: Vec<u32>,
}

impl Section {
    /// Whether it is too short to be worth describing.
    pub(crate) fn is_short(&self) -> bool {
        let tokens: usize = self.parts.iter().map(|part| estimate_tokens(&part.text)).sum();
        tokens < MIN_TOKENS
    }

    /// Identifies everything that the model is shown of the section.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let parts = self.parts.iter().flat_map(|part| [part.title.as_str(), &part.text]);
        for text in [self.layer.name(), self.heading.as_str()].into_iter().chain(parts) {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        hex(&digest.finalize()).chars().take(32).collect()
    }

    pub(crate) fn summarized_by(&self, description: Description) -> SectionSummary {
        let parts = self.parts.iter().map(|part| part.ordinal).collect();
        SectionSummary { layer: self.layer, ordinal: self.ordinal, description, parts }
    }

    /// Keeps the sentences and keywords that the text supports, and only the links that it contains.
    ///
    /// # Errors
    /// A message for the model if no sentence of the summary is supported.
    pub(crate) fn check(&self, description: Description) -> Result<Description, String> {
        let texts: Vec<&str> = self.parts.iter().map(|part| part.text.as_str()).collect();
        let max_chars = if self.layer == Layer::L1 { MAX_DOCUMENT_CHARS } else { MAX_NODE_CHARS };
        let summary = supported_sentences(&description.summary, &self.heading, &texts, max_chars);
        if summary.is_empty() {
            return Err("the text supports no sentence of the summary".to_owned());
        }
        let summaries = description.parts.iter().map(String::as_str).chain(std::iter::repeat(""));
        let parts =
            self.parts.iter().zip(summaries).map(|(part, summary)| {
                supported_sentences(summary, &part.title, &[&part.text], MAX_NODE_CHARS)
            });
        let (parts, keywords) = (parts.collect(), supported_keywords(description.keywords, &texts));
        Ok(Description { summary, parts, keywords })
    }
}

/// The sentences of a summary that the texts support, on one line, as many as fit.
fn supported_sentences(summary: &str, heading: &str, texts: &[&str], max_chars: usize) -> String {
    let sources: Vec<&str> = texts.iter().copied().chain([heading]).collect();
    let clear = without_foreign_links(summary, &sources);
    let (mut kept, mut length) = (String::new(), 0);
    for sentence in sentences(&clear).into_iter().filter_map(|range| clear.get(range)) {
        let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let chars = sentence.chars().count() + usize::from(!kept.is_empty());
        let is_repeated = kept.contains(&sentence);
        if is_repeated || length + chars > max_chars || !is_supported(&sentence, &sources, MIN_SUPPORT) {
            continue;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        length += chars;
        kept.push_str(&sentence);
    }
    kept
}

/// The keywords that the texts support, without repetitions.
fn supported_keywords(keywords: Vec<String>, texts: &[&str]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for keyword in keywords {
        let keyword = keyword.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_repeated = kept.iter().any(|other| other.to_lowercase() == keyword.to_lowercase());
        let fits = (1..=MAX_KEYWORD_CHARS).contains(&keyword.chars().count());
        let is_supported = || lkr_text::support(&keyword, texts) >= MIN_KEYWORD_SUPPORT;
        if fits && !is_repeated && kept.len() < MAX_KEYWORDS && is_supported() {
            kept.push(keyword);
        }
    }
    kept
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn section(texts: &[&str]) -> Section {
        let part =
            |(text, ordinal): (&&str, u32)| Part { ordinal, title: String::new(), text: (*text).to_owned() };
        let parts = texts.iter().zip(7..).map(part).collect();
        Section { layer: Layer::L2, ordinal: 3, heading: "Moons > Europa".to_owned(), parts }
    }

    fn description(summary: &str, parts: &[&str]) -> Description {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Description { summary: summary.to_owned(), parts, keywords: Vec::new() }
    }

    #[test]
    fn check_keeps_only_sentences_that_the_text_supports() {
        let section = section(&["The ice is 20 kilometres thick.", "Below lies an ocean of water."]);
        let checked = |summary: &str, parts: &[&str]| section.check(description(summary, parts));
        let good = checked(
            "Europa's ice is\n20 kilometres thick. It is made of cheese from Holland.",
            &["Thick ice.", "Bread."],
        );
        assert_eq!(good.unwrap(), description("Europa's ice is 20 kilometres thick.", &["Thick ice.", ""]));
        let linked = checked("An ocean of water lies below, see https://evil.example/?q=1.", &[]).unwrap();
        assert_eq!(linked, description("An ocean of water lies below, see .", &["", ""]));
        let twice = checked("The ice is thick. An ocean lies below. The ice is thick.", &[]).unwrap();
        assert_eq!(twice.summary, "The ice is thick. An ocean lies below.");
        assert!(checked("The ice is 30 kilometres thick.", &[]).is_err() && checked("", &[]).is_err());
    }

    #[test]
    fn supported_keywords_are_in_the_text_and_not_repeated() {
        let of = |keywords: &[&str]| {
            supported_keywords(
                keywords.iter().map(|s| (*s).to_owned()).collect(),
                &["The ice of Europa is thick."],
            )
        };
        assert_eq!(of(&["ice", "Ice", " Europa\n", "cheese", "", &"ice ".repeat(40)]), ["ice", "Europa"]);
    }

    #[test]
    fn digest_changes_with_everything_shown_and_not_with_the_ordinal() {
        let one = section(&["a", "b"]);
        let others = [
            section(&["ab"]),
            section(&["b", "a"]),
            Section { heading: String::new(), ..section(&["a", "b"]) },
            Section { layer: Layer::L1, ..section(&["a", "b"]) },
        ];
        assert!(others.iter().all(|other| other.digest() != one.digest()));
        let elsewhere = Section { ordinal: 9, ..section(&["a", "b"]) };
        assert_eq!(elsewhere.digest(), one.digest(), "a section that moved is the same");
        assert!(one.is_short() && !section(&[&"ice and water ".repeat(40)]).is_short());
    }
}
