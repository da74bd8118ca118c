//! The kinds of requests, and how often each is sent.

use std::fmt;

use anyhow::Result;

use crate::exit::usage;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A search that the cache cannot answer.
    Search,
    /// A search that was sent before.
    Cached,
    /// A search of the documents that an expression selects.
    Filtered,
    /// A search of one space.
    Space,
    /// A context for a language model.
    Context,
    /// A search with a summary.
    Summary,
    /// Adding a document.
    Add,
    /// Deleting a document that this run added.
    Delete,
}

const KINDS: [Kind; 8] = [
    Kind::Search,
    Kind::Cached,
    Kind::Filtered,
    Kind::Space,
    Kind::Context,
    Kind::Summary,
    Kind::Add,
    Kind::Delete,
];

/// What the name `mixed` stands for.
const MIXED: [(Kind, u64); 8] = [
    (Kind::Search, 6),
    (Kind::Cached, 6),
    (Kind::Filtered, 2),
    (Kind::Space, 2),
    (Kind::Context, 2),
    (Kind::Summary, 1),
    (Kind::Add, 2),
    (Kind::Delete, 1),
];

/// The largest weight.
const MAX_WEIGHT: u64 = 1_000_000;

/// Kinds of requests with their weights, which are above zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mix(Vec<(Kind, u64)>);

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Cached => "cached",
            Self::Filtered => "filtered",
            Self::Space => "space",
            Self::Context => "context",
            Self::Summary => "summary",
            Self::Add => "add",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Mix {
    /// Parses kinds such as `search=8`; a kind without a weight has the weight 1.
    ///
    /// # Errors
    /// The first part that is no kind with a weight, or is named twice.
    pub(super) fn parse(parts: &[String]) -> Result<Self> {
        if let [only] = parts
            && only == "mixed"
        {
            return Ok(Self(MIXED.to_vec()));
        }
        let mut mix: Vec<(Kind, u64)> = Vec::new();
        for part in parts {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let Some(kind) = KINDS.into_iter().find(|kind| kind.name() == name) else {
                let names = KINDS.map(Kind::name).join(", ");
                return Err(usage(format!("{name:?} is no kind of request: use {names}, or mixed alone")));
            };
            if mix.iter().any(|(known, _)| *known == kind) {
                return Err(usage(format!("{name} is named twice")));
            }
            let weight = weight.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight));
            let Some(weight) = weight else {
                return Err(usage(format!(
                    "the weight in {part:?} is no whole number from 1 to {MAX_WEIGHT}"
                )));
            };
            mix.push((kind, weight));
        }
        if mix.is_empty() {
            return Err(usage("no kind of request is named"));
        }
        Ok(Self(mix))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|(known, _)| *known == kind)
    }

    /// The kind for a random number. Each kind has the share of its weight.
    pub(super) fn pick(&self, random: u64) -> Kind {
        let total = self.0.iter().map(|(_, weight)| weight).sum::<u64>().max(1);
        let mut left = random % total;
        for (kind, weight) in &self.0 {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        Kind::Search
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Mix> {
        Mix::parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn each_kind_has_the_share_of_its_weight() {
        let mix = parse("search=3,add").unwrap();
        let picked: Vec<Kind> = (0..8).map(|random| mix.pick(random)).collect();
        assert_eq!(picked.iter().filter(|kind| **kind == Kind::Search).count(), 6);
        assert_eq!(picked.iter().filter(|kind| **kind == Kind::Add).count(), 2);
        assert!(mix.has(Kind::Add) && !mix.has(Kind::Delete));
        assert!(KINDS.iter().all(|kind| parse("mixed").unwrap().has(*kind)));
    }

    #[test]
    fn mistake_in_a_mix_is_named() {
        for (text, part) in [
            ("serach=8", "\"serach\" is no kind of request: use search, cached"),
            ("search=x", "\"search=x\" is no whole number from 1"),
            ("search=0", "\"search=0\" is no whole number"),
            ("search=-1", "\"search=-1\" is no whole number"),
            ("add,search,add=2", "add is named twice"),
            ("search,mixed", "mixed alone"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(Mix::parse(&[]).unwrap_err().to_string().contains("no kind"));
    }
}
