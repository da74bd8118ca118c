use std::{
    collections::HashMap,
    fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{
    parsed_file::{ParsedFile, body},
    sources::name_of,
};

/// Where what was read goes, and as what.
#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Write the texts into this folder, each under the file's name with .txt behind, rather than print them.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Tell the plugin, the warnings and the blocks too, as JSON; in a folder beside the text, with .json behind.
    #[arg(long)]
    json: bool,
    /// Leave furniture out, such as running headers.
    #[arg(long)]
    body: bool,
}

impl Output {
    /// Makes the folder. Two sources that would be written to one file are refused before anything is read.
    pub(super) fn prepare(&self, sources: &[PathBuf]) -> Result<()> {
        let Some(folder) = &self.out else { return Ok(()) };
        let mut seen: HashMap<String, &Path> = HashMap::new();
        for source in sources {
            let name = name_of(source);
            if let Some(before) = seen.insert(name.clone(), source) {
                bail!("{} and {} are both named {name}", before.display(), source.display());
            }
        }
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))
    }

    /// Writes what was read in a file, or prints it, under its name where it is one of several. Warnings that do not
    /// stand in JSON are told apart.
    pub(super) fn write(&self, answer: ParsedFile, several: bool) -> Result<()> {
        let parsed = if self.body { body(&answer.parsed) } else { answer.parsed };
        let answer = ParsedFile { parsed, ..answer };
        if !self.json {
            for warning in &answer.parsed.warnings {
                writeln!(stderr(), "{}: warning: {warning}", answer.file_name)?;
            }
        }
        match &self.out {
            Some(folder) => self.save(&answer, folder),
            None => self.print(&answer, several),
        }
    }

    fn save(&self, answer: &ParsedFile, folder: &Path) -> Result<()> {
        let save = |ending: &str, content: &str| {
            let path = folder.join(format!("{}.{ending}", answer.file_name));
            fs::write(&path, content).with_context(|| format!("write {}", path.display()))
        };
        if self.json {
            save("json", &answer.to_json()?)?;
        }
        save("txt", &answer.parsed.text)
    }

    fn print(&self, answer: &ParsedFile, several: bool) -> Result<()> {
        let mut stdout = stdout().lock();
        if self.json {
            return Ok(writeln!(stdout, "{}", answer.to_json()?)?);
        }
        if several {
            writeln!(stdout, "==> {} <==", answer.file_name)?;
        }
        Ok(writeln!(stdout, "{}", answer.parsed.text.trim_end())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        let output = Output { out: Some(folder.clone()), json: false, body: false };
        let error = output.prepare(&["a/x.md".into(), "b/x.md".into()]).unwrap_err().to_string();
        assert_eq!(error, "a/x.md and b/x.md are both named x.md");
        assert!(!folder.exists());
        output.prepare(&["a/x.md".into(), "b/y.md".into()]).unwrap();
        assert!(folder.is_dir());
    }
}
