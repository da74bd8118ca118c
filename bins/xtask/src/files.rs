//! Scores every plugin on real files: the texts against those of other programs, whether a search finds each word, the
//! headings, and the speed.

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
    full_text: &'static str,
    body: Option<&'static str>,
}

const KINDS: [Kind; 5] = [
    Kind { name: "pdf", plugins: &["pdf_oxide", "lopdf", "pdfium"], full_text: "pdf", body: None },
    Kind { name: "docx", plugins: &["zip_xml", "office_oxide"], full_text: "docx", body: None },
    Kind { name: "html", plugins: &["article", "html2text"], full_text: "html", body: Some("html_main") },
    Kind { name: "md", plugins: &["markdown"], full_text: "md", body: None },
    Kind { name: "txt", plugins: &["plain-text"], full_text: "txt", body: None },
];

/// What is read of files.
#[derive(Clone, Copy)]
enum Reading {
    /// The whole text, with a check that a search finds each word.
    Whole,
    /// The text without furniture.
    Body,
    /// The whole text, with headings found without the outline.
    WithoutOutline,
}

struct Scores {
    /// The folder of files, with the references in `ref`.
    folder: PathBuf,
    /// The folder for extracted texts.
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
        let plugins: Vec<&str> =
            kind.plugins.iter().copied().filter(|name| self.is_available(name)).collect();
        eprintln!("\n{}", kind.name);
        let full_texts = self.read(kind, &plugins, Reading::Whole)?;
        self.compare(kind.full_text, &full_texts)?;
        if let Some(reference) = kind.body {
            self.compare(reference, &self.read(kind, &plugins, Reading::Body)?)?;
        }
        self.headings(kind, &full_texts)
    }

    fn is_available(&self, plugin: &str) -> bool {
        plugin != "pdfium" || self.pdfium.is_some()
    }

    /// Reads the files with each plugin and returns the folders of the extracted texts.
    fn read(&self, kind: &Kind, plugins: &[&str], reading: Reading) -> Result<Vec<PathBuf>> {
        let (name, flag, lines) = match reading {
            Reading::Whole => ("whole", "--check-words", 2),
            Reading::Body => ("body", "--body", 1),
            Reading::WithoutOutline => ("without-outline", "--no-outline", 1),
        };
        let read = |plugin: &&str| {
            let out = self.out.join(name).join(plugin);
            let mut parse = Command::new(&self.program);
            parse.args(["parse", "--json", "--keep-going"]).arg(self.folder.join(kind.name));
            parse.arg("--out").arg(&out).arg(flag);
            if kind.plugins.len() > 1 {
                parse.args([format!("--{}", kind.name), (*plugin).to_owned()]);
            }
            parse.args(self.pdfium.iter().flat_map(|library| [OsStr::new("--pdfium"), library.as_os_str()]));
            let output = parse.stdin(Stdio::null()).output().context("cannot run lkr")?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "lkr parse: {stderr}");
            let summary = stderr.lines().rev().take(lines).collect::<Vec<_>>().join("; ");
            eprintln!("{plugin}: {summary}");
            Ok(out)
        };
        plugins.iter().map(read).collect()
    }

    /// Scores texts against the references of this name.
    fn compare(&self, reference: &str, texts: &[PathBuf]) -> Result<()> {
        let mut score = tools::python(&self.packages)?;
        score.arg("../shared/tools/score_files.py").args(texts).args(["--types", reference]);
        score.arg("--ref").arg(self.folder.join("ref"));
        run(score)
    }

    fn headings(&self, kind: &Kind, texts: &[PathBuf]) -> Result<()> {
        for text_dir in texts {
            let plugin = text_dir.file_name().unwrap_or_default();
            let mut script = tools::python(&self.packages)?;
            match kind.name {
                "pdf" => {
                    eprintln!("{}: outline", plugin.display());
                    script.arg("tools/outline_recall.py").arg(self.folder.join(kind.name)).arg(text_dir);
                    let without = self.read(kind, &[&plugin.to_string_lossy()], Reading::WithoutOutline)?;
                    script.arg("--without").args(without);
                    script.args(["--worst", "3"]);
                }
                "docx" => {
                    script.arg("tools/docx_headings.py").arg(text_dir).arg(self.folder.join(kind.name));
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
