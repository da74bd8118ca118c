//! `lkr parse`: the text of files, read as the server reads them.

mod output;
mod parsed_file;
mod read;
mod sources;

use std::{
    env,
    io::{Write, stderr},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, stream};
use lkr::files::{FilePlugins, FileReader, FileTools};

use output::Output;
use sources::sources;

/// The argument that makes a process of this program a worker which reads one file.
pub(crate) const PARSE_WORKER: &str = "parse-worker";

/// The variable that names the library of PDFium.
const PDFIUM: &str = "LKR_PDFIUM_LIBRARY";

/// What `lkr parse` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, and folders whose files of known kinds are read, at any depth.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// End with success even where a file was refused.
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    choice: Choice,
    /// How many files are read at once; no more than there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
}

/// Which plugins read.
#[derive(Debug, clap::Args)]
struct Choice {
    /// The plugin for PDF files: pdf_oxide, lopdf or pdfium.
    #[arg(long, value_name = "PLUGIN")]
    pdf: Option<String>,
    /// The plugin for DOCX files: zip_xml or office_oxide.
    #[arg(long, value_name = "PLUGIN")]
    docx: Option<String>,
    /// The plugin for HTML files: article or html2text.
    #[arg(long, value_name = "PLUGIN")]
    html: Option<String>,
    /// The plugin for text in pictures: none or tesseract.
    #[arg(long, value_name = "PLUGIN")]
    ocr: Option<String>,
    /// The languages of text in pictures, as codes of ISO 639-1.
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    languages: Option<Vec<String>>,
    /// The library PDFium; else the one that LKR_PDFIUM_LIBRARY names.
    #[arg(long, value_name = "LIBRARY")]
    pdfium: Option<PathBuf>,
}

/// Reads the files and prints or writes their text. Fails where one was refused.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let outcome = runtime.block_on(parse(args));
    // A file that nobody waits for any more holds up nothing.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn parse(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let tools = args.choice.tools();
    let plugins = args.choice.plugins(&tools)?;
    let sources = sources(&args.paths)?;
    args.output.prepare(&sources)?;
    let spool = tempfile::tempdir().context("make a folder")?;
    let program = env::current_exe().context("find the program's own file")?;
    let reader = FileReader::in_workers(program, vec![PARSE_WORKER.into()], spool.path().to_owned(), tools)?;
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = args.jobs.map_or(processors, usize::from);
    let Counts { read, refused } = read_all(&reader, &plugins, sources, jobs, &args.output).await?;
    let seconds = started.elapsed().as_secs_f64();
    writeln!(stderr(), "{read} read, {refused} refused, {seconds:.1} s")?;
    Ok(if refused == 0 || args.keep_going { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Default)]
struct Counts {
    read: usize,
    refused: usize,
}

/// Reads so many files at once, and writes what is in them in their order.
async fn read_all(
    reader: &FileReader,
    plugins: &FilePlugins,
    sources: Vec<PathBuf>,
    jobs: usize,
    output: &Output,
) -> Result<Counts> {
    let several = sources.len() > 1;
    let readings = sources.into_iter().map(|source| async move {
        let answer = read::read(reader, plugins, &source).await;
        (source, answer)
    });
    let mut answers = stream::iter(readings).buffered(jobs);
    let mut counts = Counts::default();
    while let Some((source, answer)) = answers.next().await {
        match answer {
            Ok(answer) => {
                counts.read += 1;
                output.write(answer, several)?;
            }
            Err(reason) => {
                counts.refused += 1;
                writeln!(stderr(), "{}: {reason}", source.display())?;
            }
        }
    }
    Ok(counts)
}

impl Choice {
    /// What of the things that plugins stand on is here.
    fn tools(&self) -> FileTools {
        let named = env::var_os(PDFIUM).filter(|name| !name.is_empty()).map(PathBuf::from);
        let program = format!("tesseract{}", env::consts::EXE_SUFFIX);
        let path = env::var_os("PATH").unwrap_or_default();
        let tesseract =
            env::split_paths(&path).map(|folder| folder.join(&program)).find(|file| file.is_file());
        FileTools { pdfium: self.pdfium.clone().or(named), tesseract }
    }

    /// The plugins, all of which are here.
    fn plugins(&self, tools: &FileTools) -> Result<FilePlugins> {
        let (default, here) = (FilePlugins::default(), tools.plugins());
        let absent = tools.pdfium.as_deref().filter(|library| !library.is_file());
        if let Some(library) = absent.filter(|_| self.pdf.as_deref() == Some("pdfium")) {
            bail!("there is no library {}", library.display());
        }
        Ok(FilePlugins {
            pdf: chosen("--pdf", self.pdf.as_ref(), &here.pdf)?.unwrap_or(default.pdf),
            docx: chosen("--docx", self.docx.as_ref(), &here.docx)?.unwrap_or(default.docx),
            html: chosen("--html", self.html.as_ref(), &here.html)?.unwrap_or(default.html),
            ocr: chosen("--ocr", self.ocr.as_ref(), &here.ocr)?.unwrap_or(default.ocr),
            ocr_languages: self.languages.clone().unwrap_or(default.ocr_languages),
        })
    }
}

fn chosen(flag: &str, name: Option<&String>, here: &[&str]) -> Result<Option<String>> {
    match name {
        Some(name) if !here.contains(&name.as_str()) => {
            let hint = if name == "pdfium" { "; --pdfium names its library" } else { "" };
            bail!("{flag} {name}: there is no such plugin here, but {}{hint}", here.join(", "))
        }
        name => Ok(name.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_refused_with_what_is() {
        let choice = |pdf: &str| Choice {
            pdf: Some(pdf.to_owned()),
            docx: None,
            html: None,
            ocr: None,
            languages: Some(vec!["de".to_owned()]),
            pdfium: None,
        };
        let plugins = choice("lopdf").plugins(&FileTools::default()).unwrap();
        assert_eq!((plugins.pdf.as_str(), plugins.docx.as_str()), ("lopdf", "zip_xml"));
        assert_eq!(plugins.ocr_languages, ["de"]);
        let error = choice("acrobat").plugins(&FileTools::default()).unwrap_err().to_string();
        assert_eq!(error, "--pdf acrobat: there is no such plugin here, but pdf_oxide, lopdf");
        let error = choice("pdfium").plugins(&FileTools::default()).unwrap_err().to_string();
        assert!(error.ends_with("; --pdfium names its library"), "{error}");
        let tools = |library| FileTools { pdfium: Some(library), tesseract: None };
        let error = choice("pdfium").plugins(&tools("absent.so".into())).unwrap_err().to_string();
        assert_eq!(error, "there is no library absent.so");
        let here = tools(env::current_exe().unwrap());
        assert_eq!(choice("pdfium").plugins(&here).unwrap().pdf, "pdfium");
    }
}
