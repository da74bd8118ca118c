//! Output of parsed files.

use std::{
    collections::HashMap,
    fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::parsed_file::{ParsedFile, body};
use crate::collection::file_name;

/// The destination and the format of the output.
#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Write each text to <FOLDER>/<file name>.txt instead of printing it.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write JSON with the plugin, warnings and blocks; with --out, to <FOLDER>/<file name>.json beside the text.
    #[arg(long)]
    json: bool,
    /// Omit furniture, such as running headers.
    #[arg(long)]
    body: bool,
}

impl Output {
    /// Creates the folder. Fails before anything is read if two sources would be written to the same file.
    pub(super) fn prepare(&self, sources: &[PathBuf]) -> Result<()> {
        let Some(folder) = &self.out else { return Ok(()) };
        let mut sources_by_name: HashMap<String, &Path> = HashMap::new();
        for source in sources {
            let name = file_name(source);
            if let Some(before) = sources_by_name.insert(name.clone(), source) {
                bail!("{} and {} are both named {name}", before.display(), source.display());
            }
        }
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
    }

    /// Writes or prints a parsed file. If there are several files, each is printed below its name. Without JSON,
    /// warnings go to the standard error.
    pub(super) fn write(&self, file: ParsedFile, is_one_of_several: bool) -> Result<()> {
        let parsed = if self.body { body(&file.parsed) } else { file.parsed };
        let file = ParsedFile { parsed, ..file };
        if !self.json {
            for warning in &file.parsed.warnings {
                writeln!(stderr(), "{}: warning: {warning}", file.file_name)?;
            }
        }
        match &self.out {
            Some(folder) => self.save(&file, folder),
            None => self.print(&file, is_one_of_several),
        }
    }

    fn save(&self, file: &ParsedFile, folder: &Path) -> Result<()> {
        let save = |ending: &str, content: &str| {
            let path = folder.join(format!("{}.{ending}", file.file_name));
            fs::write(&path, content).with_context(|| format!("write {}", path.display()))
        };
        if self.json {
            save("json", &file.to_json()?)?;
        }
        save("txt", &file.parsed.text)
    }

    fn print(&self, file: &ParsedFile, is_one_of_several: bool) -> Result<()> {
        let mut stdout = stdout().lock();
        if self.json {
            return Ok(writeln!(stdout, "{}", file.to_json()?)?);
        }
        if is_one_of_several {
            writeln!(stdout, "==> {} <==", file.file_name)?;
        }
        Ok(writeln!(stdout, "{}", file.parsed.text.trim_end())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_with_equal_names_are_refused() {
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
