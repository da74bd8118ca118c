//! Valid and invalid taxonomy files, and the line numbers in their errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

use std::error::Error as _;
use std::fs;

use lkr_taxonomy::{Category, Error, ErrorKind, Taxonomy};
use proptest::prelude::*;
use serde_json::json;

/// A category in YAML that begins on the given line; three lines.
fn category(id: &str) -> String {
    format!("- id: {id}\n  name: The {id}\n  description: About {id}.\n")
}

fn list(categories: &[&str]) -> String {
    format!("categories:\n{}", categories.concat())
}

fn message(error: &Error) -> String {
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.source().unwrap().to_string()
}

fn check_yaml(text: &str, line: usize, part: &str) {
    let error = Taxonomy::from_yaml(text).map(|_| ()).expect_err(text);
    let message = message(&error);
    assert!(message.starts_with(&format!("line {line}: ")), "{message:?}, not line {line} of\n{text}");
    assert!(message.contains(part), "{message:?} has no {part:?}");
}

fn check_json(text: &str, line: usize, part: &str) {
    let error = Taxonomy::from_json(text).map(|_| ()).expect_err(text);
    let message = message(&error);
    assert!(message.starts_with(&format!("line {line}: ")), "{message:?}, not line {line} of\n{text}");
    assert!(message.contains(part), "{message:?} has no {part:?}");
}

#[test]
fn built_in_taxonomy_is_valid() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/default.yaml")).unwrap();
    let read = Taxonomy::from_yaml(&text).unwrap();
    let built_in = Taxonomy::built_in();
    assert_eq!(read.fingerprint(), built_in.fingerprint());
    assert!((25..=40).contains(&built_in.categories().len()));
    for category in built_in.categories() {
        assert!((5..=15).contains(&category.keywords.len()), "{}", category.name);
        assert_eq!(built_in.by_name(&category.name), Some(category));
    }
    assert_eq!(built_in.by_name("sales"), None);
}

#[test]
fn yaml_and_json_give_the_same_taxonomy() {
    let yaml = "categories:\n- id: a.b-c_1\n  name: ' Ä '\n  description: |\n    One\n    two.\n  keywords: [x, 'true']\n- {id: b, name: B, description: Of b., parent: a.b-c_1, keywords: ~}\n";
    let json = "\u{feff}{\"categories\": [\n\t{\"id\":\"a.b-c_1\",\"name\":\"\\u00c4\",\"description\":\"One\\ntwo.\",\"keywords\":[\"x\",\"true\"],\"parent\":null},\n\t{\"id\":\"b\",\"name\":\"B\",\"description\":\"Of b.\",\"parent\":\"a.b-c_1\"}]}";
    let (yaml, json) = (Taxonomy::from_yaml(yaml).unwrap(), Taxonomy::from_json(json).unwrap());
    assert_eq!(yaml.categories(), json.categories());
    assert_eq!(yaml.fingerprint(), json.fingerprint());
    assert_eq!(yaml.fingerprint().len(), 64);
    assert_ne!(yaml.fingerprint(), Taxonomy::built_in().fingerprint());
    assert_eq!(yaml.categories()[0].name, "Ä");
    assert_eq!(yaml.categories()[1].parent.as_deref(), Some("a.b-c_1"));
}

#[test]
fn json_escapes_are_decoded() {
    let text = r#"{"categories":[{"id":"a","name":"\ud83d\ude00 \"\\","description":"a\/b"}]}"#;
    let taxonomy = Taxonomy::from_json(text).unwrap();
    let category = &taxonomy.categories()[0];
    assert_eq!((category.name.as_str(), category.description.as_str()), ("😀 \"\\", "a/b"));
}

#[test]
fn invalid_yaml_is_refused_with_its_line() {
    check_yaml("", 1, "empty");
    check_yaml("# nothing\n", 1, "empty");
    check_yaml("categories:\n- id: a\n  name: [b\n", 4, "");
    check_yaml(&list(&[&category("a"), "- id: b\n name: B\n"]), 6, "");
    check_yaml(&list(&[&category("a"), "- id: 'b\n"]), 5, "");
    check_yaml(&format!("{}---\na: b\n", list(&[&category("a")])), 6, "second document");
    check_yaml(&format!("# x\ncategories: {}{}\n", "[".repeat(50), "]".repeat(50)), 2, "deep");
    check_yaml(&list(&["- id: a\n  ? [x]\n  : y\n"]), 3, "a key must be a text");
}

#[test]
fn deeply_nested_file_is_refused() {
    for part in ["[", "- ", "{a: ", "? ", "&a ", "! ", "\"", "#", "a: ", "\t", "|\n"] {
        let text = part.repeat((1 << 20) / part.len());
        assert!(Taxonomy::from_yaml(&text).is_err(), "{part}");
        assert!(Taxonomy::from_json(&text).is_err(), "{part}");
    }
    let text = format!("{}{}", "[".repeat(1 << 19), "]".repeat(1 << 19));
    assert!(Taxonomy::from_json(&text).is_err());
}

#[test]
fn yaml_anchors_tags_and_merge_keys_are_refused() {
    check_yaml(&list(&["- &x\n  id: a\n"]), 2, "anchor");
    check_yaml(&list(&["- id: &x a\n  name: *x\n"]), 2, "anchor");
    check_yaml(&list(&["- id: a\n  name: *x\n"]), 3, "");
    check_yaml(&list(&["- id: !!str a\n"]), 2, "tag");
    check_yaml(&list(&["- id: a\n  <<: {name: b}\n"]), 3, "unknown key \"<<\"");
}

#[test]
fn yaml_of_wrong_structure_is_refused_with_its_line() {
    check_yaml("- a\n", 1, "a taxonomy must be a mapping, not a list");
    check_yaml("# x\n\nkategorien: []\n", 3, "unknown key \"kategorien\"");
    check_yaml("# x\ncategories:\n", 2, "no value");
    check_yaml("# x\ncategories: 3\n", 2, "categories must be a list, not a number");
    check_yaml("categories:\n  []\n", 2, "no category");
    check_yaml(&list(&[&category("a"), "- b\n"]), 5, "a category must be a mapping, not a text");
    check_yaml(&list(&[&category("a"), "- id: b\n  colour: red\n"]), 6, "unknown key \"colour\"");
    check_yaml(&list(&[&category("a"), "- id: b\n  name: B\n"]), 5, "description is missing");
    check_yaml(&list(&["- id: a\n  id: b\n"]), 3, "repeated");
    check_yaml(&format!("{}categories: []\n", list(&[&category("a")])), 5, "repeated");
    check_yaml(&list(&["- id: a\n  name: 2024\n"]), 3, "put it in quotes");
    check_yaml(&list(&["- id: a\n  name: true\n"]), 3, "true or false");
    check_yaml(&list(&["- id: a\n  name:\n\n\n  description: b\n"]), 3, "name has no value");
    check_yaml(&list(&[&category("a"), "  keywords: b\n"]), 5, "keywords must be a list, not a text");
    check_yaml(&list(&[&category("a"), "  keywords:\n  - b\n  - 0x1F\n"]), 7, "a keyword must be a text");
    check_yaml(&list(&[&category("a"), "  parent: [b]\n"]), 5, "parent must be a text, not a list");
}

#[test]
fn yaml_of_invalid_categories_is_refused_with_its_line() {
    check_yaml(&list(&[&category("a"), "- id: B\n  name: B\n"]), 5, "id \"B\"");
    check_yaml(&list(&[&format!("- id: {}\n  name: B\n", "a".repeat(65))]), 2, "1 to 64");
    check_yaml(&list(&[&category("a"), &category("b"), &category("a")]), 8, "line 2");
    check_yaml(&list(&[&category("a"), "- id: b\n  name: the A\n  description: c\n"]), 6, "line 3");
    check_yaml(&list(&["- id: a\n  name: '  '\n"]), 3, "name is blank");
    check_yaml(&list(&[&format!("- id: a\n  name: {}\n", "ä".repeat(65))]), 3, "65 characters");
    check_yaml(&list(&["- id: a\n  name: \"a\\tb\"\n"]), 3, "control");
    check_yaml(&list(&["- id: a\n  name: Uncategorized\n"]), 3, "without a category");
    check_yaml(&list(&["- id: a\n  name: A\n  description: ''\n"]), 4, "description is blank");
    let long = "d".repeat(2_001);
    check_yaml(&list(&[&format!("- id: a\n  name: A\n  description: >-\n    {long}\n")]), 4, "2001");
    check_yaml(&list(&[&category("a"), "  keywords: [b,\n    ' ']\n"]), 6, "keyword is blank");
    let keywords = "  - b\n".repeat(51);
    check_yaml(&list(&[&category("a"), "  keywords:\n", &keywords]), 56, "more than 50 keywords");
    check_yaml(&list(&[&category("a"), "  parent: b\n"]), 5, "parent \"b\" is not the id");
    check_yaml(&list(&[&category("a"), "  parent: a\n"]), 5, "own ancestor");
    let cycle =
        [&*category("r"), "  parent: a\n", &category("a"), "  parent: b\n", &category("b"), "  parent: a\n"];
    check_yaml(&list(&cycle), 9, "\"a\" is its own ancestor");
    let many: String = (0..501).map(|n| category(&format!("c{n}"))).collect();
    check_yaml(&list(&[&many]), 1_502, "more than 500 categories");
    check_yaml(&format!("{}#{}", list(&[&category("a")]), "x".repeat(1 << 20)), 1, "1 MiB");
    check_yaml(&list(&[&category("a"), "- id: b\n  name: B\n"]).replace('\n', "\r\n"), 5, "missing");
}

#[test]
fn invalid_json_is_refused_with_its_line() {
    let with = |entries: &str| {
        format!(
            "{{\n\t\"categories\": [\n{{\"id\":\"a\",\"name\":\"A\",\n\"description\":\"x\"{entries}}}]}}"
        )
    };
    Taxonomy::from_json(&with("")).unwrap();
    check_json("", 1, "EOF");
    check_json("{\n\"categories\": [\n}", 3, "expected");
    check_json("{\n\"categories\"\n:\n[],}", 4, "key must be a string");
    check_json("# yaml\ncategories: []", 1, "");
    check_json("\n[]", 2, "a taxonomy must be a mapping");
    check_json("{\n\"categories\"\n:\n\n[]}", 5, "no category");
    check_json(&format!("\n{}{}", "[".repeat(50), "]".repeat(50)), 2, "deep");
    check_json(&with(",\n\n\"colour\":\"red\""), 6, "unknown key \"colour\"");
    check_json(&with(",\n\"id\":\"b\""), 5, "repeated");
    check_json(
        &with(",\n\"keywords\":\n[\"\\n {\\\"\\\\\",\n1]"),
        7,
        "a keyword must be a text, not a number",
    );
    check_json(&with(",\n\"parent\":\nfalse"), 6, "true or false");
    check_json(&with(",\n\"parent\":\n\"b\""), 6, "not the id of a category");
    check_json(&with("},\n{\"id\":\"b\""), 5, "name is missing");
    check_json(&with("},\n{\"id\":\"b\",\n\"name\":\"\\ud800\""), 6, "hex escape");
    check_json(&with("},\n{\"id\":\"b\",\n\"name\":null"), 6, "name has no value");
    check_json(&with("},\n{\"id\":\"b\",\n\"name\":\"a\",\"description\":\"c\""), 6, "line 3");
}

#[test]
fn invalid_file_is_refused_with_its_path_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taxonomy.yaml");
    let starts = |bytes: &[u8], line: usize| {
        fs::write(&path, bytes).unwrap();
        let message = message(&Taxonomy::load(&path).unwrap_err());
        assert!(message.starts_with(&format!("{}:{line}: ", path.display())), "{message}");
    };
    starts(list(&[&category("a"), "- id: b\n"]).as_bytes(), 5);
    starts(b"categories:\n- id: \xff\n", 2);
    starts("é".repeat(600_000).as_bytes(), 1);
    fs::write(&path, list(&[&category("a")])).unwrap();
    assert_eq!(Taxonomy::load(&path).unwrap().categories()[0].id, "a");
    let json = folder.path().join("taxonomy.JSON");
    fs::write(&json, list(&[&category("a")])).unwrap();
    assert!(message(&Taxonomy::load(&json).unwrap_err()).contains(".JSON:1: "));
    let error = Taxonomy::load(&folder.path().join("none.yaml")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    assert!(error.source().unwrap().to_string().contains("none.yaml: "));
}

/// Text without control characters that trimming leaves alone.
fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>().prop_filter("plain", |c| !c.is_control()), 1..most)
        .prop_map(|chars| chars.into_iter().collect::<String>().trim().to_owned())
        .prop_filter("not blank", |text| !text.is_empty() && text.to_lowercase() != "uncategorized")
}

fn categories() -> impl Strategy<Value = Vec<Category>> {
    let one = (text(60), text(300), prop::collection::vec(text(60), 0..4), any::<u8>());
    prop::collection::vec(one, 1..12).prop_map(|drawn| {
        let made = drawn.into_iter().enumerate().map(|(at, (name, description, keywords, parent))| {
            let parent = usize::from(parent) % (at + 1);
            let name = format!("{at} {}", name.chars().take(50).collect::<String>().trim());
            Category {
                id: format!("c{at}"),
                name: name.trim().to_owned(),
                description,
                keywords,
                parent: (parent > 0).then(|| format!("c{}", parent - 1)),
            }
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn taxonomy_written_as_json_reads_back_equal(categories in categories(), pretty: bool) {
        let value = json!({"categories": categories});
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let taxonomy = Taxonomy::from_json(&text).unwrap();
        prop_assert_eq!(taxonomy.categories(), categories.as_slice());
    }

    #[test]
    fn arbitrary_input_does_not_panic(text in "[-a-z:\\[\\]{}\"'&*!|>#,?%@\\\\ \n\t0-9]{0,80}") {
        let _ = Taxonomy::from_yaml(&text);
        let _ = Taxonomy::from_yaml(&format!("categories:\n- id: a\n  name: {text}"));
        let _ = Taxonomy::from_json(&text);
    }
}
