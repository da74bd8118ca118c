use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Answer;
use crate::{
    arguments::{expression, pairs},
    commands::Common,
};

/// What is searched, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct QueryArgs {
    /// The question or the words to find. Several arguments are joined by spaces.
    #[arg(required = true, value_name = "QUERY")]
    words: Vec<String>,
    /// Search this space alone; may be repeated. [default: all that the account may read]
    #[arg(long = "space", short, value_name = "NAME")]
    spaces: Vec<String>,
    /// Find documents that match this filter expression, such as '{"field": "metadata.team", "eq": "sea"}'.
    #[arg(long = "where", value_name = "JSON")]
    condition: Option<String>,
    /// Find documents of this category.
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    /// Find documents with exactly this source.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// Find documents in this language, an ISO 639-1 code.
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// Find documents with this metadata; may be repeated.
    #[arg(long, short, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Rank with all layers, or with chunks alone.
    #[arg(long, value_parser = ["layered", "flat"])]
    mode: Option<String>,
}

/// The arguments of `lkr search` and `lkr ask`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
                        \x20 lkr search \"why does the sea rise?\" --space handbook -n 5\n\
                        \x20 lkr search tides --where '{\"field\": \"created_at\", \"gte\": \"2026-01-01\"}'\n\
                        \x20 lkr ask \"who may sign a contract?\" --metadata team=legal")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Show this many passages, 1 to 100. [default: 10]
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<u64>,
    /// Show each document once, by its best passages.
    #[arg(long)]
    by_document: bool,
    /// With --json: how each layer ranked the results.
    #[arg(long, requires = "json")]
    explain: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl QueryArgs {
    /// The keys that searches and contexts share.
    pub(crate) fn body(&self) -> Result<Map<String, Value>> {
        let mut filters = Map::new();
        for (name, value) in
            [("category", &self.category), ("source", &self.source), ("language", &self.language)]
        {
            filters.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
        if !self.metadata.is_empty() {
            filters.insert("metadata".to_owned(), pairs(&self.metadata)?.into());
        }
        let mut body = Map::from_iter([("query".to_owned(), json!(self.words.join(" ")))]);
        if !filters.is_empty() {
            body.insert("filters".to_owned(), filters.into());
        }
        if !self.spaces.is_empty() {
            body.insert("spaces".to_owned(), json!(self.spaces));
        }
        if let Some(text) = &self.condition {
            body.insert("where".to_owned(), expression(text)?);
        }
        body.extend(self.mode.as_ref().map(|mode| ("mode".to_owned(), json!(mode))));
        Ok(body)
    }
}

impl Args {
    /// The body of the search.
    pub(super) fn body(&self, answer: Answer) -> Result<Value> {
        let mut body = self.query.body()?;
        body.extend(self.limit.map(|limit| ("top_k".to_owned(), json!(limit))));
        for (name, is_set) in [("explain", self.explain), ("summarize", answer == Answer::Summary)] {
            if is_set {
                body.insert(name.to_owned(), json!(true));
            }
        }
        if self.by_document {
            body.insert("group_by".to_owned(), json!("document"));
        }
        Ok(body.into())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn body(arguments: &[&str]) -> Result<Value> {
        let arguments = ["lkr"].iter().chain(arguments);
        Cli::try_parse_from(arguments).unwrap().args.body(Answer::Passages)
    }

    #[test]
    fn body_contains_what_was_given_and_nothing_else() {
        assert_eq!(body(&["why", "tides?"]).unwrap(), json!({"query": "why tides?"}));
        let condition = r#"{"field": "title", "prefix": "T"}"#;
        let all = body(&[
            "tides",
            "-n",
            "3",
            "--space",
            "sea",
            "--space",
            "moon",
            "--where",
            condition,
            "-m",
            "team=a=b",
            "--category",
            "Ops",
            "--mode",
            "flat",
            "--by-document",
            "--explain",
            "--json",
        ]);
        let expected = json!({
            "query": "tides", "top_k": 3, "spaces": ["sea", "moon"], "where": {"field": "title", "prefix": "T"},
            "filters": {"category": "Ops", "metadata": {"team": "a=b"}}, "mode": "flat", "group_by": "document",
            "explain": true
        });
        assert_eq!(all.unwrap(), expected);
    }

    #[test]
    fn wrong_expressions_and_pairs_are_usage_errors() {
        for arguments in [["x", "--where", "{"], ["x", "--metadata", "team"]] {
            let error = body(&arguments).unwrap_err();
            assert_eq!(crate::exit::exit_of(&error), crate::exit::Exit::Usage, "{error:#}");
        }
    }
}
