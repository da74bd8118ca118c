//! `lkr parse`: extracts the text of files as the server does.

mod output;
mod parsed_file;
mod read;
mod sources;
mod word_check;

use std::{
    env,
    io::{Write, stderr},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures_util::{StreamExt, stream};
use lkr::files::{FilePlugins, FileReader, FileTools};

use output::Output;
use sources::sources;
use word_check::WordCheck;

use crate::exit::usage;

/// The argument that makes this program a worker process, which reads one file.
pub(crate) const PARSE_WORKER: &str = "parse-worker";

/// The variable with the path of the PDFium library.
const PDFIUM: &str = "LKR_PDFIUM_LIBRARY";

/// The arguments of `lkr parse`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Read these files, and the files of known formats in these folders, at any depth.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Exit with success even if a file was refused.
    #[arg(long)]
    keep_going: bool,
    /// Check that a search by words finds each word of the texts, and name those that it would not find.
    #[arg(long)]
    check_words: bool,
    #[command(flatten)]
    plugin_args: PluginArgs,
    /// Read this many files at once. [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
}

/// The parsing plugins.
#[derive(Debug, clap::Args)]
struct PluginArgs {
    /// Read PDF files with this plugin: pdf_oxide, lopdf or pdfium.
    #[arg(long, value_name = "PLUGIN")]
    pdf: Option<String>,
    /// Find the headings of PDF files without their outlines, to measure how well that works.
    #[arg(long, hide = true)]
    no_outline: bool,
    /// Read DOCX files with this plugin: zip_xml or office_oxide.
    #[arg(long, value_name = "PLUGIN")]
    docx: Option<String>,
    /// Read HTML files with this plugin: article or html2text.
    #[arg(long, value_name = "PLUGIN")]
    html: Option<String>,
    /// Read text in pictures with this plugin: none or tesseract.
    #[arg(long, value_name = "PLUGIN")]
    ocr: Option<String>,
    /// Read text in pictures in these languages (ISO 639-1 codes).
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    languages: Option<Vec<String>>,
    /// Use this PDFium library instead of LKR_PDFIUM_LIBRARY.
    #[arg(long, value_name = "LIBRARY")]
    pdfium: Option<PathBuf>,
}

/// Reads the files and prints or writes their text. Fails if a file was refused or a checked word would not be found.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let outcome = runtime.block_on(parse(args));
    // Shutdown does not wait for files whose result is no longer needed.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn parse(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let tools = args.plugin_args.tools();
    let plugins = args.plugin_args.plugins(&tools)?;
    let sources = sources(&args.paths)?;
    args.output.prepare(&sources)?;
    let spool = tempfile::tempdir().context("create a temporary folder")?;
    let program = env::current_exe().context("find this program's executable")?;
    let reader = FileReader::in_workers(program, vec![PARSE_WORKER.into()], spool.path().to_owned(), tools)?;
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = args.jobs.map_or(processors, usize::from);
    let mut word_check = args.check_words.then(WordCheck::default);
    let Counts { read, refused } =
        read_all(&reader, &plugins, sources, jobs, &args.output, word_check.as_mut()).await?;
    let seconds = started.elapsed().as_secs_f64();
    if let Some(check) = &word_check {
        writeln!(stderr(), "{check}")?;
    }
    writeln!(stderr(), "{read} read, {refused} refused, {seconds:.1} s")?;
    let words_are_found = word_check.is_none_or(|check| check.is_complete());
    let is_complete = (refused == 0 || args.keep_going) && words_are_found;
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Default)]
struct Counts {
    read: usize,
    refused: usize,
}

/// Reads `jobs` files at once, and writes their texts in order.
async fn read_all(
    reader: &FileReader,
    plugins: &FilePlugins,
    sources: Vec<PathBuf>,
    jobs: usize,
    output: &Output,
    mut word_check: Option<&mut WordCheck>,
) -> Result<Counts> {
    let several = sources.len() > 1;
    let reads = sources.into_iter().map(|source| async move {
        let parsed = read::read(reader, plugins, &source).await;
        (source, parsed)
    });
    let mut parsed_files = stream::iter(reads).buffered(jobs);
    let mut counts = Counts::default();
    while let Some((source, parsed)) = parsed_files.next().await {
        match parsed {
            Ok(parsed) => {
                counts.read += 1;
                if let Some(missing) = word_check.as_mut().and_then(|check| check.add(&parsed)) {
                    writeln!(stderr(), "{}: {missing}", source.display())?;
                }
                output.write(parsed, several)?;
            }
            Err(reason) => {
                counts.refused += 1;
                writeln!(stderr(), "{}: {reason}", source.display())?;
            }
        }
    }
    Ok(counts)
}

impl PluginArgs {
    /// Finds the external tools that plugins need.
    fn tools(&self) -> FileTools {
        let from_environment = env::var_os(PDFIUM).filter(|name| !name.is_empty()).map(PathBuf::from);
        let program = format!("tesseract{}", env::consts::EXE_SUFFIX);
        let path = env::var_os("PATH").unwrap_or_default();
        let tesseract =
            env::split_paths(&path).map(|folder| folder.join(&program)).find(|file| file.is_file());
        FileTools { pdfium: self.pdfium.clone().or(from_environment), tesseract }
    }

    /// The chosen plugins. Fails if one is not available.
    fn plugins(&self, tools: &FileTools) -> Result<FilePlugins> {
        let (default, available_plugins) = (FilePlugins::default(), tools.plugins());
        let is_named = self.pdfium.is_some() || self.pdf.as_deref() == Some("pdfium");
        let absent = tools.pdfium.as_deref().filter(|library| is_named && !library.is_file());
        if let Some(library) = absent {
            return Err(usage(format!("no library at {}", library.display())));
        }
        Ok(FilePlugins {
            pdf: available("--pdf", self.pdf.as_ref(), &available_plugins.pdf)?.unwrap_or(default.pdf),
            pdf_outline: !self.no_outline,
            docx: available("--docx", self.docx.as_ref(), &available_plugins.docx)?.unwrap_or(default.docx),
            html: available("--html", self.html.as_ref(), &available_plugins.html)?.unwrap_or(default.html),
            ocr: available("--ocr", self.ocr.as_ref(), &available_plugins.ocr)?.unwrap_or(default.ocr),
            ocr_languages: self.languages.clone().unwrap_or(default.ocr_languages),
        })
    }
}

fn available(flag: &str, name: Option<&String>, available_plugins: &[&str]) -> Result<Option<String>> {
    match name {
        Some(name) if !available_plugins.contains(&name.as_str()) => {
            let hint = if name == "pdfium" { "; give its library with --pdfium" } else { "" };
            let listed = available_plugins.join(", ");
            Err(usage(format!("{flag} {name}: plugin not available; available: {listed}{hint}")))
        }
        name => Ok(name.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{Exit, exit_of};

    #[test]
    fn unavailable_plugin_is_refused_with_the_available_ones() {
        let plugin_args = |pdf: &str| PluginArgs {
            pdf: Some(pdf.to_owned()),
            no_outline: true,
            docx: None,
            html: None,
            ocr: None,
            languages: Some(vec!["de".to_owned()]),
            pdfium: None,
        };
        let plugins = plugin_args("lopdf").plugins(&FileTools::default()).unwrap();
        assert_eq!((plugins.pdf.as_str(), plugins.docx.as_str()), ("lopdf", "zip_xml"));
        assert_eq!((plugins.pdf_outline, plugins.ocr_languages), (false, vec!["de".to_owned()]));
        let error = plugin_args("acrobat").plugins(&FileTools::default()).unwrap_err().to_string();
        assert_eq!(error, "--pdf acrobat: plugin not available; available: pdf_oxide, lopdf");
        let error = plugin_args("pdfium").plugins(&FileTools::default()).unwrap_err().to_string();
        assert!(error.ends_with("; give its library with --pdfium"), "{error}");
        let tools = |library| FileTools { pdfium: Some(library), tesseract: None };
        let error = plugin_args("pdfium").plugins(&tools("absent.so".into())).unwrap_err().to_string();
        assert_eq!(error, "no library at absent.so");
        let of_a_flag = PluginArgs { pdfium: Some("absent.so".into()), pdf: None, ..plugin_args("") };
        let error = of_a_flag.plugins(&of_a_flag.tools()).unwrap_err();
        assert_eq!((error.to_string(), exit_of(&error)), ("no library at absent.so".to_owned(), Exit::Usage));
        let unused = PluginArgs { pdf: None, ..plugin_args("") };
        assert_eq!(unused.plugins(&tools("absent.so".into())).unwrap().pdf, FilePlugins::default().pdf);
        let available_plugins = tools(env::current_exe().unwrap());
        assert_eq!(plugin_args("pdfium").plugins(&available_plugins).unwrap().pdf, "pdfium");
    }
}
