//! The top heading, where the document's title is another.

#[path = "support/common.rs"]
mod common;

use common::{file_named, titled, tree};

#[track_caller]
fn check_titled(text: &str, title: &str, expected: &[&str]) {
    assert_eq!(tree(&titled(text, title)), expected);
}

#[test]
fn top_heading_that_is_not_the_title_begins_every_path() {
    check_titled(
        "# My zebra\n\nlead\n\n## B\nb\n### C\nc\n#### D\nd",
        "simple",
        &[
            "lead [\"My zebra\"]",
            "  lead [\"My zebra\"]",
            "    lead [\"My zebra\"]",
            "B [\"My zebra\", \"B\"]",
            "  b [\"My zebra\", \"B\"]",
            "    b [\"My zebra\", \"B\"]",
            "  C [\"My zebra\", \"B\", \"C\"]",
            "    c [\"My zebra\", \"B\", \"C\"]",
            "    d [\"My zebra\", \"B\", \"C\", \"D\"]",
        ],
    );
    check_titled("Zebra\n===\n\nb", "simple", &["b [\"Zebra\"]", "  b [\"Zebra\"]", "    b [\"Zebra\"]"]);
    check_titled(
        "lead\n\n# Zebra\nb",
        "x",
        &[
            "lead []",
            "  lead []",
            "    lead []",
            "Zebra [\"Zebra\"]",
            "  Zebra [\"Zebra\"]",
            "    b [\"Zebra\"]",
        ],
    );
}

#[test]
fn front_matter_is_below_a_top_heading_that_is_not_the_title() {
    check_titled(
        "---\ntitle: X\n---\n# A\n## B\nb",
        "x",
        &[
            "X [\"A\"]",
            "  X [\"A\"]",
            "    ---\ntitle: X\n--- [\"A\"]",
            "B [\"A\", \"B\"]",
            "  B [\"A\", \"B\"]",
            "    b [\"A\", \"B\"]",
        ],
    );
}

#[test]
fn top_heading_without_text_is_text_below_itself() {
    check_titled("# A", "x", &["A [\"A\"]", "  A [\"A\"]", "    # A [\"A\"]"]);
    check_titled("# A\n## B", "x", &["B [\"A\", \"B\"]", "  B [\"A\", \"B\"]", "    ## B [\"A\", \"B\"]"]);
    check_titled(
        "b\n# A",
        "x",
        &["b []", "  b []", "    b []", "A [\"A\"]", "  A [\"A\"]", "    # A [\"A\"]"],
    );
}

#[test]
fn top_heading_is_the_title_whatever_its_case_and_white_space() {
    let paths =
        |heading: &str, title: &str| titled(&format!("# {heading}\n\n## B\nb"), title).chunks[0].path.clone();
    for title in ["", " \t", "My zebra", " my  ZEBRA "] {
        assert_eq!(paths("My zebra", title), ["B"], "{title:?}");
    }
    assert_eq!(paths("\u{dc}ber uns", "u\u{308}ber uns"), ["B"], "composed and decomposed letters are equal");
    for title in ["my-zebra", "zebra", "My zebra.md", "My zebras", "Myzebra"] {
        assert_eq!(paths("My zebra", title), ["My zebra", "B"], "{title:?}");
    }
}

#[test]
fn top_heading_longer_than_a_title_begins_every_path() {
    let heading = format!("{}zebra", "word ".repeat(30));
    let layered = titled(&format!("# {heading}\n\nb"), "");
    assert_eq!(layered.root.title.chars().count(), 119, "a derived title is cut");
    assert_eq!(layered.chunks[0].path, [heading]);
}

#[test]
fn top_heading_begins_the_paths_of_a_text_that_is_split_by_topic() {
    let text =
        (0..400).map(|n| format!("Sentence {n} tells of thing {} and more. ", n % 97)).collect::<String>();
    let layered = titled(&format!("# Zebra\n\n{text}"), "x");
    assert!(layered.l2.len() > 1);
    let nodes = layered.l2.iter().chain(&layered.l3).map(|node| &node.path);
    assert!(nodes.chain(layered.chunks.iter().map(|chunk| &chunk.path)).all(|path| *path == ["Zebra"]));
}

#[test]
fn front_matter_title_that_is_not_the_title_begins_every_path() {
    let text = "---\ntitle: \"Edit pages\"\n---\n\nlead\n\n## B\nb\n\n## C\nc";
    let paths = |text: &str, title: &str| -> Vec<Vec<String>> {
        titled(text, title).chunks.into_iter().map(|chunk| chunk.path).collect()
    };
    let under_name = paths(text, "_index");
    assert!(under_name.iter().all(|path| path[0] == "Edit pages"), "{under_name:?}");
    assert_eq!(under_name.last().unwrap()[..], ["Edit pages", "C"]);
    for title in ["", "edit  pages"] {
        assert!(paths(text, title).iter().flatten().all(|heading| heading != "Edit pages"), "{title:?}");
    }
    let with_top = paths("---\ntitle: X\n---\n\n# A\n\n## B\nb", "_index");
    assert!(with_top.iter().all(|path| path[0] == "A"), "{with_top:?}");
    assert!(paths("---\ntags: []\n---\n\n## B\nb\n\n## C\nc", "_index")[0].is_empty());
    let without_front_matter = paths("lead\n\n---\ntitle: X\n---\n\n## B\nb\n\n## C\nc", "_index");
    assert!(without_front_matter.iter().flatten().all(|heading| heading != "X"), "{without_front_matter:?}");
}

#[test]
fn file_is_indexed_with_the_title_of_its_text_in_place_of_its_name() {
    let indexed = |text: &str, name: &str| {
        let indexed = file_named(text, name).root.indexed_title;
        (indexed.text, indexed.begins_paths)
    };
    let long = format!("{}zebra", "word ".repeat(60));
    for (text, name, expected, begins_paths) in [
        ("# Zebra\n\n## B\nb", "x", "Zebra", true),
        ("# Zebra\n\n## B\nb", "zebra", "Zebra", false),
        ("---\ntitle: T\n---\n\n## B\nb\n\n## C\nc", "x", "T", true),
        ("---\ntitle: T\n---\n\n## B\nb\n\n## C\nc", "t", "T", false),
        // The title in the front matter is the document's; the heading is in the paths.
        ("---\ntitle: T\n---\n\n# Zebra\n\n## B\nb", "x", "T", false),
        ("---\ntitle: zebra\n---\n\n# Zebra\n\n## B\nb", "x", "Zebra", true),
        // Here no path has the heading, so that its words are in the title alone.
        ("---\ntitle: T\n---\n\n# Zebra\n\n## B\nb", "zebra", "Zebra", false),
        ("## B\nb\n\n## C\nc", "x", "B", false),
        ("lead\n\n## B\nb", "x", "B", false),
        ("no heading", "x", "x", false),
        ("---\ntags: []\n---\n\nno heading", "x", "x", false),
        // It is cut where it is indexed, and whole in the paths.
        (&format!("---\ntitle: {long}\n---\n\n## B\nb\n\n## C\nc"), "x", &long, false),
    ] {
        assert_eq!(indexed(text, name), (expected.to_owned(), begins_paths), "{text:?} in {name}");
        assert_eq!(file_named(text, name).root.title, name);
        let given = titled(text, name).root;
        assert_eq!((given.indexed_title.text, given.indexed_title.begins_paths), (given.title, false));
    }
}

#[test]
fn file_is_indexed_like_the_same_text_with_the_title_of_its_text() {
    let indexed = |layered: &lkr_domain::Layered| -> Vec<String> {
        let title = &layered.root.indexed_title;
        layered.chunks.iter().map(|chunk| lkr_layers::indexed_chunk(title, chunk)).collect()
    };
    for (text, title) in [
        ("# Zebra\n\nlead\n\n## B\nb\n### C\nc\n\n## Zebra\nd", "Zebra"),
        ("---\ntitle: T\n---\n\nlead\n\n## B\nb\n\n## C\nc", "T"),
        ("---\ntitle: T\n---\n\n# Zebra\n\n## B\nb", "T"),
        ("## B\nb\n\n## C\nc", "B"),
    ] {
        assert_eq!(indexed(&file_named(text, "x")), indexed(&titled(text, title)), "{text:?}");
    }
}
