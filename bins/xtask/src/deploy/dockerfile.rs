//! Reads a Dockerfile: its stages, and their instructions as one line each.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// The instructions of a stage, in order, and what the stage begins with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    /// The name that `COPY --from` uses.
    pub(crate) name: Option<String>,
    /// The image that it begins with, such as `debian:bookworm-slim`.
    pub(crate) base: String,
    pub(crate) instructions: Vec<Instruction>,
}

/// An instruction without its comments and continued lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// In capitals, such as `RUN`.
    pub(crate) keyword: String,
    pub(crate) text: String,
}

/// Names and their values.
pub(crate) type Variables = BTreeMap<String, String>;

/// The stages of a Dockerfile; the last one is the image.
pub(crate) fn stages(dockerfile: &str) -> Result<Vec<Stage>> {
    let (mut arguments, mut stages) = (Variables::new(), Vec::<Stage>::new());
    for instruction in instructions(dockerfile)? {
        let Instruction { keyword, text } = &instruction;
        match (keyword.as_str(), stages.last_mut()) {
            ("FROM", _) => stages.push(stage(&filled_in(text, &arguments)?)?),
            (_, Some(stage)) => stage.instructions.push(instruction),
            ("ARG", None) => arguments.extend(assignments(text)?),
            (_, None) => bail!("{keyword} before FROM"),
        }
    }
    ensure!(!stages.is_empty(), "the Dockerfile has no FROM");
    Ok(stages)
}

fn instructions(dockerfile: &str) -> Result<Vec<Instruction>> {
    let (mut found, mut line) = (Vec::new(), String::new());
    for part in dockerfile.lines() {
        // A comment may stand between the lines of an instruction.
        if part.trim_start().starts_with('#') || part.trim().is_empty() {
            continue;
        }
        let (part, continues) = match part.trim_end().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (part.trim_end(), false),
        };
        line.push_str(if line.is_empty() { part.trim_start() } else { part });
        if !continues {
            let (keyword, text) =
                line.split_once(char::is_whitespace).context("an instruction has a text")?;
            found.push(Instruction { keyword: keyword.to_uppercase(), text: text.trim().to_owned() });
            line.clear();
        }
    }
    ensure!(line.is_empty(), "the last instruction does not end");
    Ok(found)
}

fn stage(text: &str) -> Result<Stage> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (base, name) = match words[..] {
        [base] => (base, None),
        [base, r#as, name] if r#as.eq_ignore_ascii_case("as") => (base, Some(name.to_owned())),
        _ => bail!("FROM {text} is not understood"),
    };
    Ok(Stage { name, base: base.to_owned(), instructions: Vec::new() })
}

/// The variables that `ENV` or `ARG` sets: words of the form NAME=VALUE, the value perhaps in quotation marks. A name
/// without a value is left out.
pub(crate) fn assignments(text: &str) -> Result<Variables> {
    let (mut found, mut word, mut quote) = (Variables::new(), String::new(), None);
    let end = |word: &mut String, found: &mut Variables| {
        if let Some((name, value)) = word.split_once('=') {
            found.insert(name.to_owned(), value.to_owned());
        }
        word.clear();
    };
    for letter in text.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (letter, None) if letter.is_whitespace() => end(&mut word, &mut found),
            (letter, _) => word.push(letter),
        }
    }
    ensure!(quote.is_none(), "{text} lacks a quotation mark");
    end(&mut word, &mut found);
    Ok(found)
}

/// A text with values in place of `${NAME}`.
pub(crate) fn filled_in(text: &str, variables: &Variables) -> Result<String> {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').with_context(|| format!("{text} lacks a brace"))?;
        filled.push_str(variables.get(name).with_context(|| format!("{name} has no value"))?);
        filled.push_str(rest);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCKERFILE: &str = "# syntax=docker/dockerfile:1\nARG RELEASE=bookworm\n\nFROM rust:1-${RELEASE} AS build\nRUN a \\\n    # why\n    && b\n\nFROM debian:${RELEASE}-slim\nARG LANGUAGES=\"\"\nenv A=1 \\\n    B=\"two words\"\n";

    #[test]
    fn stages_have_their_instructions_on_one_line_each() {
        let stages = stages(DOCKERFILE).unwrap();
        let [build, image] = &stages[..] else { panic!("{stages:?}") };
        assert_eq!((build.name.as_deref(), build.base.as_str()), (Some("build"), "rust:1-bookworm"));
        assert_eq!(build.instructions, [Instruction { keyword: "RUN".into(), text: "a     && b".into() }]);
        assert_eq!((image.name.as_deref(), image.base.as_str()), (None, "debian:bookworm-slim"));
        let [languages, environment] = &image.instructions[..] else { panic!("{image:?}") };
        assert_eq!(assignments(&languages.text).unwrap(), [("LANGUAGES".into(), String::new())].into());
        let expected = [("A".into(), "1".into()), ("B".into(), "two words".into())];
        assert_eq!(
            (environment.keyword.as_str(), assignments(&environment.text).unwrap()),
            ("ENV", expected.into())
        );
    }

    #[test]
    fn unreadable_dockerfiles_are_refused() {
        for wrong in ["", "RUN a", "FROM a b", "FROM ${NOTHING}", "FROM a\nRUN b \\\n"] {
            assert!(stages(wrong).is_err(), "{wrong:?}");
        }
        assert!(assignments("A=\"open").is_err());
    }
}
