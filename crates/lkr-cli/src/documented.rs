//! The command lines in the documentation are valid ones.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use crate::{Cli, leading_flags::behind_command};

/// The pages that are read, below the root of the repository.
const PAGES: [&str; 6] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy", "docs", "crates"];

/// Numbers, where pages write a letter.
const NUMBER: &str = "N";

#[test]
fn command_lines_of_all_pages_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut count, mut wrong) = (0, Vec::new());
    for page in PAGES.iter().flat_map(|page| pages(&root.join(page))) {
        let text = fs::read_to_string(&page).unwrap();
        for line in code_lines(&text).filter_map(command_line) {
            count += 1;
            if let Some(error) = error_of(&line) {
                wrong.push(format!("{}: {line}: {error}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "{count} command lines");
}

/// The Markdown files at a path.
fn pages(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return if path.extension().is_some_and(|extension| extension == "md") {
            vec![path.to_owned()]
        } else {
            Vec::new()
        };
    }
    fs::read_dir(path).unwrap().flat_map(|entry| pages(&entry.unwrap().path())).collect()
}

/// The lines of indented and fenced blocks.
fn code_lines(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && (is_fenced || line.starts_with("    "))
    })
}

/// The command line in a line of a block, without the comment behind it. The generated usages have placeholders.
fn command_line(line: &str) -> Option<String> {
    let line = line.trim();
    let is_usage = line.contains('<')
        || line.contains("[OPTIONS]")
        || line.contains('|')
        || line.contains("$(")
        || line.contains(" = ");
    if !line.starts_with("lkr ") || is_usage || !line.is_ascii() {
        return None;
    }
    Some(line.split(" #").next().unwrap_or(line).trim().to_owned())
}

/// Why a command line is refused, if it is.
fn error_of(line: &str) -> Option<String> {
    let words = words(line).into_iter().map(|word| if word == NUMBER { "1".to_owned() } else { word });
    match Cli::try_parse_from(behind_command(&Cli::command(), words.map(OsString::from))) {
        Err(error) if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            error.to_string().lines().next().map(str::to_owned)
        }
        _ => None,
    }
}

/// The words of a command line; quotation marks hold words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn wrong_command_lines_are_found() {
    let checked = |line| command_line(line).map(|line| error_of(&line).is_some());
    assert_eq!(checked("    lkr search \"why tides?\" --limit N  # best"), Some(false));
    assert_eq!(checked("    lkr search --nope x"), Some(true));
    assert_eq!(checked("lkr find x"), Some(true));
    assert_eq!(checked("lkr keeps what it stores |"), None);
}
