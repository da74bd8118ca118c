//! The reference pages, which are generated. `UPDATE_DOCS=1 cargo test --workspace --test api reference` rewrites them.

mod endpoints;
mod errors;
mod keys;
mod metrics;

use std::{env, fs, path::PathBuf};

const COMMAND: &str = "UPDATE_DOCS=1 cargo test --workspace --test api reference";

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares a page with what it must be, or rewrites it if `UPDATE_DOCS` is set.
fn check(name: &str, expected: &str) {
    let path = page(name);
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let difference = stored.lines().zip(expected.lines()).find(|(stored, expected)| stored != expected);
    assert!(
        stored == expected,
        "docs/{name} is not what the code says; rewrite it by {COMMAND}\nfirst difference (page, code): {difference:?}"
    );
}

/// A page with what lies between its two comments `<!-- NAME: … -->` and `<!-- end of NAME -->` replaced.
fn with_section(page: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: "), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (comment, rest) = rest.split_once("-->\n").unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}{comment}-->\n{section}{end}{after}")
}

#[test]
fn section_of_a_page_is_replaced_between_its_comments() {
    let page = "# A\n\n<!-- keys: by X -->\nold\n<!-- end of keys -->\n\nB\n";
    assert_eq!(
        with_section(page, "keys", "new\n"),
        "# A\n\n<!-- keys: by X -->\nnew\n<!-- end of keys -->\n\nB\n"
    );
}
