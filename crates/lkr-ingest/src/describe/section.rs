//! What a language model is shown of a document, and what it says of it.

use lkr_domain::{Layer, hex};
use lkr_text::{estimate_tokens, is_supported, sentences, without_foreign_links};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Below so many tokens a text is its own best summary.
const SHORT_TOKENS: usize = 60;
/// What share of a sentence's words has to stand in the text that it is about: summaries use words of their own, but
/// not only.
const BORNE_OUT: f64 = 0.3;
/// How long summaries may be, in code points.
const NODE_CHARS: usize = 600;
const WHOLE_CHARS: usize = 1_200;
/// How many keywords are kept, and how long each may be.
const KEYWORDS: usize = 12;
const KEYWORD_CHARS: usize = 60;

/// A section, or the whole document, as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// L2 for a section, L1 for the document.
    pub(crate) layer: Layer,
    pub(crate) ordinal: u32,
    /// The document's title and the headings that lead there.
    pub(crate) heading: String,
    /// What lies in it: subsections and passages, or of the whole document its sections.
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) ordinal: u32,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// What was said of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) summary: String,
    /// Of each part, in their order; empty where nothing of it stands.
    #[serde(default)]
    pub(crate) parts: Vec<String>,
    /// Of the whole document.
    #[serde(default)]
    pub(crate) keywords: Vec<String>,
}

/// Summaries in the place of those of nodes.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) layer: Layer,
    pub(crate) ordinal: u32,
    pub(crate) said: Said,
    /// The ordinals of the parts.
    pub(crate) parts: Vec<u32>,
}

impl Section {
    pub(crate) fn is_short(&self) -> bool {
        let tokens: usize = self.parts.iter().map(|part| estimate_tokens(&part.text)).sum();
        tokens < SHORT_TOKENS
    }

    /// What tells it apart from every other section of the document, and from itself before it changed.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let parts = self.parts.iter().flat_map(|part| [part.title.as_str(), &part.text]);
        for text in [self.layer.name(), self.heading.as_str()].into_iter().chain(parts) {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        hex(&digest.finalize()).chars().take(32).collect()
    }

    pub(crate) fn described(&self, said: Said) -> Described {
        let parts = self.parts.iter().map(|part| part.ordinal).collect();
        Described { layer: self.layer, ordinal: self.ordinal, said, parts }
    }

    /// What of an answer stands: sentences that the text bears out, without links that it does not hold.
    ///
    /// # Errors
    /// What is wrong, where nothing of the summary stands.
    pub(super) fn vetted(&self, said: Said) -> Result<Said, String> {
        let texts: Vec<&str> = self.parts.iter().map(|part| part.text.as_str()).collect();
        let chars = if self.layer == Layer::L1 { WHOLE_CHARS } else { NODE_CHARS };
        let summary = borne_out(&said.summary, &self.heading, &texts, chars);
        if summary.is_empty() {
            return Err("nothing of the summary stands in the text".to_owned());
        }
        let parts = self.parts.iter().zip(said.parts.iter().map(String::as_str).chain(std::iter::repeat("")));
        let parts =
            parts.map(|(part, said)| borne_out(said, &part.title, &[&part.text], NODE_CHARS)).collect();
        Ok(Said { summary, parts, keywords: keywords(said.keywords, &texts) })
    }
}

/// The sentences of a summary that stand in the texts, on one line, as many as have room.
fn borne_out(summary: &str, heading: &str, texts: &[&str], most_chars: usize) -> String {
    let sources: Vec<&str> = texts.iter().copied().chain([heading]).collect();
    let clear = without_foreign_links(summary, &sources);
    let (mut kept, mut length) = (String::new(), 0);
    for sentence in sentences(&clear).into_iter().filter_map(|range| clear.get(range)) {
        let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let chars = sentence.chars().count() + usize::from(!kept.is_empty());
        let is_said = kept.contains(&sentence);
        if is_said || length + chars > most_chars || !is_supported(&sentence, &sources, BORNE_OUT) {
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

/// The keywords of which a word stands in the texts, each once.
fn keywords(said: Vec<String>, texts: &[&str]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for keyword in said {
        let keyword = keyword.split_whitespace().collect::<Vec<_>>().join(" ");
        let known = kept.iter().any(|other| other.to_lowercase() == keyword.to_lowercase());
        let fits = (1..=KEYWORD_CHARS).contains(&keyword.chars().count());
        if fits && !known && kept.len() < KEYWORDS && lkr_text::support(&keyword, texts) >= 0.5 {
            kept.push(keyword);
        }
    }
    kept
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::describe) fn section(texts: &[&str]) -> Section {
        let part =
            |(text, ordinal): (&&str, u32)| Part { ordinal, title: String::new(), text: (*text).to_owned() };
        let parts = texts.iter().zip(7..).map(part).collect();
        Section { layer: Layer::L2, ordinal: 3, heading: "Moons > Europa".to_owned(), parts }
    }

    fn said(summary: &str, parts: &[&str]) -> Said {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Said { summary: summary.to_owned(), parts, keywords: Vec::new() }
    }

    #[test]
    fn what_stands_in_the_text_stays() {
        let section = section(&["The ice is 20 kilometres thick.", "Below lies an ocean of water."]);
        let vetted = |summary: &str, parts: &[&str]| section.vetted(said(summary, parts));
        let good = vetted(
            "Europa's ice is\n20 kilometres thick. It is made of cheese from Holland.",
            &["Thick ice.", "Bread."],
        );
        assert_eq!(good.unwrap(), said("Europa's ice is 20 kilometres thick.", &["Thick ice.", ""]));
        let linked = vetted("An ocean of water lies below, see https://evil.example/?q=1.", &[]).unwrap();
        assert_eq!(linked, said("An ocean of water lies below, see .", &["", ""]));
        let twice = vetted("The ice is thick. An ocean lies below. The ice is thick.", &[]).unwrap();
        assert_eq!(twice.summary, "The ice is thick. An ocean lies below.");
        assert!(vetted("The ice is 30 kilometres thick.", &[]).is_err() && vetted("", &[]).is_err());
    }

    #[test]
    fn keywords_are_of_the_text() {
        let of = |said: &[&str]| {
            keywords(said.iter().map(|s| (*s).to_owned()).collect(), &["The ice of Europa is thick."])
        };
        assert_eq!(of(&["ice", "Ice", " Europa\n", "cheese", "", &"ice ".repeat(40)]), ["ice", "Europa"]);
    }

    #[test]
    fn a_digest_changes_with_all_that_is_shown() {
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
