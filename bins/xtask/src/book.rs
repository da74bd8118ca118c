//! `cargo xtask book`: the documentation as a book in `target/book`.
//!
//! The pages link to one another, and to files beside `docs`, by relative paths, as a forge shows them. mdBook publishes only
//! what lies in one folder, so the listed pages and the files that they link to are copied to the same paths below
//! `target/book-src`: there every link leads where it leads in a checkout.

mod links;
mod summary;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use self::summary::{PAGES, SUMMARY};
use crate::{cargo_tool::Tool, remove_dir, root, run};

/// The builder of books. Its server and its watcher are left out.
const MDBOOK: Tool =
    Tool { name: "mdbook", version: "0.5.4", arguments: &["--no-default-features", "--features", "search"] };

/// `cargo xtask book`: builds the book and checks its links.
pub(crate) fn build() -> Result<()> {
    let page = build_with(&MDBOOK.binary()?)?.join("index.html");
    eprintln!("{}", page.display());
    Ok(())
}

/// The same for lints: without mdBook it is a visible skip, and a failure in CI.
pub(crate) fn check() -> Result<()> {
    match MDBOOK.binary_or_skip("the book and its links")? {
        Some(mdbook) => build_with(&mdbook).map(drop),
        None => Ok(()),
    }
}

fn build_with(mdbook: &Path) -> Result<PathBuf> {
    let target = root()?.join("target");
    let (staged, book) = (target.join("book-src"), target.join("book"));
    stage(&root()?, &staged)?;
    remove_dir(&book)?;
    let mut build = Command::new(mdbook);
    build.arg("build").arg(&staged).arg("--dest-dir").arg(&book).env("MDBOOK_LOG", "warn");
    run(build)?;
    let broken = links::broken(&book)?;
    ensure!(broken.is_empty(), "broken links in the book:\n{}", broken.join("\n"));
    Ok(book)
}

/// Copies what the book consists of from the repository to `staged`.
fn stage(repository: &Path, staged: &Path) -> Result<()> {
    remove_dir(staged)?;
    let summary = summary::read(repository)?;
    let pages = staged.join("src");
    copy(&repository.join(PAGES).join("book.toml"), &staged.join("book.toml"))?;
    for file in summary::files(repository, &summary)? {
        copy(&repository.join(&file), &pages.join(&file))?;
    }
    let list = pages.join(SUMMARY);
    fs::write(&list, summary::from_root(&summary)).with_context(|| format!("cannot write {}", list.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {}", from.display()))
}
