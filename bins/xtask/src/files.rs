//! Scores every plugin on real files: their texts against what other programs read, whether a search finds each word,
//! headings, and speed.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::{cargo, executable, remove_dir, root, run, tools};

/// What the scripts need.
const PACKAGES: [&str; 2] = ["pypdf[crypto]==7.1.0", "python-docx==1.2.0"];

/// What the plugins of one kind of file are compared by.
struct Kind {
    /// The folder of the files, and the flag that chooses the plugin.
    name: &'static str,
    plugins: &'static [&'static str],
    /// The references of the whole text and of the body alone.
    whole: &'static str,
    body: Option<&'static str>,
}

const KINDS: [Kind; 5] = [
    Kind { name: "pdf", plugins: &["pdf_oxide", "lopdf", "pdfium"], whole: "pdf", body: None },
    Kind { name: "docx", plugins: &["zip_xml", "office_oxide"], whole: "docx", body: None },
    Kind { name: "html", plugins: &["article", "html2text"], whole: "html", body: Some("html_main") },
    Kind { name: "md", plugins: &["markdown"], whole: "md", body: None },
    Kind { name: "txt", plugins: &["plain-text"], whole: "txt", body: None },
];

struct Scores {
    /// The folder of files, with the references in `ref`.
    folder: PathBuf,
    /// The folder for what is read.
    out: PathBuf,
    program: PathBuf,
    pdfium: Option<PathBuf>,
    /// The folder of Python packages.
    packages: PathBuf,
}

/// Reads the files of `folder`, which is laid out like the shared test data, and prints the tables.
pub(crate) fn score(folder: Option<&Path>) -> Result<()> {
    let root = root()?;
    run(cargo(&["build", "--quiet", "--package", executable::PACKAGE])?)?;
    let folder = folder.map_or_else(|| root.join("../shared/data/files"), Path::to_owned);
    ensure!(folder.join("ref").is_dir(), "{} holds no references", folder.display());
    let pdfium = tools::pdfium();
    if let Err(error) = &pdfium {
        eprintln!("skipped: pdfium: {error:#}");
    }
    let packages = tools::python_packages("python", &PACKAGES)?;
    let out = root.join("target/tmp/files");
    remove_dir(&out)?;
    let program = root.join("target/debug/lkr");
    let scores = Scores { folder: folder.canonicalize()?, out, program, pdfium: pdfium.ok(), packages };
    for kind in &KINDS {
        scores.kind(kind)?;
    }
    scores.speed()
}

impl Scores {
    fn kind(&self, kind: &Kind) -> Result<()> {
        let plugins: Vec<&str> = kind.plugins.iter().copied().filter(|name| self.is_here(name)).collect();
        eprintln!("\n{}", kind.name);
        let whole = self.read(kind, &plugins, false)?;
        self.compare(kind.whole, &whole)?;
        if let Some(reference) = kind.body {
            self.compare(reference, &self.read(kind, &plugins, true)?)?;
        }
        self.headings(kind, &whole)
    }

    fn is_here(&self, plugin: &str) -> bool {
        plugin != "pdfium" || self.pdfium.is_some()
    }

    /// Reads the files with each plugin, and answers the folders of what each read.
    fn read(&self, kind: &Kind, plugins: &[&str], body: bool) -> Result<Vec<PathBuf>> {
        let read = |plugin: &&str| {
            let out = self.out.join(if body { "body" } else { "whole" }).join(plugin);
            let mut parse = Command::new(&self.program);
            parse.args(["parse", "--json", "--keep-going"]).arg(self.folder.join(kind.name));
            parse.arg("--out").arg(&out).arg(if body { "--body" } else { "--check-words" });
            if kind.plugins.len() > 1 {
                parse.args([format!("--{}", kind.name), (*plugin).to_owned()]);
            }
            parse.args(self.pdfium.iter().flat_map(|library| [OsStr::new("--pdfium"), library.as_os_str()]));
            let output = parse.stdin(Stdio::null()).output().context("cannot run lkr")?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "lkr parse: {said}");
            let summary = said.lines().rev().take(if body { 1 } else { 2 }).collect::<Vec<_>>().join("; ");
            eprintln!("{plugin}: {summary}");
            Ok(out)
        };
        plugins.iter().map(read).collect()
    }

    /// Compares with the references of that name.
    fn compare(&self, reference: &str, texts: &[PathBuf]) -> Result<()> {
        let mut score = tools::python(&self.packages)?;
        score.arg("../shared/tools/score_files.py").args(texts).args(["--types", reference]);
        score.arg("--ref").arg(self.folder.join("ref"));
        run(score)
    }

    fn headings(&self, kind: &Kind, answers: &[PathBuf]) -> Result<()> {
        for answer in answers {
            let mut script = tools::python(&self.packages)?;
            match kind.name {
                "pdf" => {
                    eprintln!("{}: outline", answer.file_name().unwrap_or_default().display());
                    script.arg("tools/outline_recall.py").arg(self.folder.join(kind.name)).arg(answer);
                    script.args(["--worst", "3"]);
                }
                "docx" => {
                    script.arg("tools/docx_headings.py").arg(answer).arg(self.folder.join(kind.name));
                }
                _ => return Ok(()),
            }
            run(script)?;
        }
        Ok(())
    }

    fn speed(&self) -> Result<()> {
        eprintln!("\npages a second");
        fs::create_dir_all(&self.out)?;
        let mut script = tools::python(&self.packages)?;
        script.arg("tools/page_speed.py").args([&self.program, &self.folder]).arg(self.out.join("300.pdf"));
        script.args(self.pdfium.iter().flat_map(|library| [OsStr::new("--pdfium"), library.as_os_str()]));
        run(script)
    }
}
