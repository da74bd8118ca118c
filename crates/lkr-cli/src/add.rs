//! `lkr add`: adds documents and waits until they are searchable.

mod inputs;
mod item;
mod page;
mod report;
mod send;

use std::process::ExitCode;

use anyhow::Result;

pub(crate) use item::Options;
pub(crate) use report::Report;

use crate::{
    arguments::pairs,
    collection::Input,
    commands::Common,
    exit::usage,
    http::Client,
    program::Program,
    terminal::{Bar, Output, Style, plural, spinner},
    wait::{Task, show_activity},
};
use inputs::Inputs;
use item::Item;
use report::Ended;

/// What is shown while one document is added.
const ADDING: &str = "adding";

/// The arguments of `lkr add`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
                        \x20 lkr add handbook report.pdf --space legal --metadata team=sea\n\
                        \x20 lkr add https://example.org/page\n\
                        \x20 pandoc notes.tex -t markdown | lkr add - --source notes.tex --upsert\n\
                        \x20 lkr add --data-dir kb handbook      # a data folder, no server")]
pub(crate) struct Args {
    /// Add files, folders, patterns such as 'docs/**/*.md', http and https addresses of single pages, collections (folders
    /// with docs.jsonl or corpus.jsonl), or a text from the standard input for -.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Add them to this space. [default: the space default]
    #[arg(long, short, value_name = "NAME")]
    space: Option<String>,
    /// The title, for a single document. [default: the name of a file, the first heading of a text]
    #[arg(long)]
    title: Option<String>,
    /// Where a single document comes from. [default: file: and the path as it is given, or the address]
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// Give them this metadata; may be repeated.
    #[arg(long, short, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Replace the document of the same source, if there is one.
    #[arg(long)]
    upsert: bool,
    /// Add them even if the same text is stored already.
    #[arg(long)]
    force: bool,
    /// Read the standard input as a file of this name, such as report.pdf.
    #[arg(long, value_name = "NAME")]
    stdin_name: Option<String>,
    /// Print the ids of the tasks, and do not wait for them.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    common: Common,
}

/// Sends the documents and prints a report. A document that is refused or fails does not stop the others.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    if args.stdin_name.is_some() && !args.paths.iter().any(|path| path == inputs::STDIN) {
        return Err(usage("--stdin-name is for the standard input, which is named by -"));
    }
    let Inputs { mut items, unread } = inputs::read(&args.paths, args.stdin_name.as_deref())?;
    if args.title.is_some() || args.source.is_some() {
        let [item] = items.as_mut_slice() else {
            return Err(usage("--title and --source are for a single document"));
        };
        item.rename(args.title.as_deref(), args.source.as_deref());
    }
    let options = Options {
        space: args.space.clone().unwrap_or_default(),
        metadata: pairs(&args.metadata)?,
        upsert: args.upsert,
        force: args.force,
        waits: !args.no_wait,
    };
    let connection = args.common.target.log_in_or_create(program)?;
    let mut report = send_items(&connection.client, items, &options, &output)?;
    connection.close()?;
    for ended in &unread {
        report.count(ended);
        print_ended(&output, None, ended)?;
    }
    if output.is_for_people() && options.waits {
        output.print(&report.to_string())?;
        report.warnings.iter().try_for_each(|warning| output.warn(warning))?;
    }
    Ok(report.exit().into())
}

/// Sends the documents of a collection and waits until all tasks have ended.
pub(crate) fn add_texts(client: &Client, inputs: Vec<Input>) -> Result<Report> {
    let items = inputs.into_iter().map(Item::Text).collect();
    send::all(client, items, &Options { waits: true, ..Options::default() }, &|_| {}, |_| Ok(()))
}

/// Sends documents, and prints each as it ends.
fn send_items(client: &Client, items: Vec<Item>, options: &Options, output: &Output) -> Result<Report> {
    let started = std::time::Instant::now();
    let (total, mut done) = (items.len() as u64, 0);
    let bar = (total > 1 && options.waits).then(|| Bar::new(output, total, "documents"));
    let wait = (total == 1 && options.waits).then(|| spinner(output, ADDING));
    let watch = |task: &Task| {
        if let Some(wait) = &wait {
            show_activity(wait, ADDING)(task);
        }
    };
    let report = send::all(client, items, options, &watch, |ended| {
        done += 1;
        if let Some(bar) = &bar {
            let left = started.elapsed().mul_f64((total - done) as f64 / done as f64);
            bar.update(done, Some(left));
        }
        print_ended(output, bar.as_ref(), ended)
    });
    if let Some(bar) = bar {
        bar.finish();
    }
    if let Some(wait) = wait {
        wait.finish_and_clear();
    }
    if report.is_err() && done > 0 {
        let documents = plural(done, "document");
        output.note(&format!("{documents} ended before; 'lkr tasks' shows what the server goes on with"))?;
    }
    report
}

/// Prints what a program reads of a document, and why a document failed.
fn print_ended(output: &Output, bar: Option<&Bar>, ended: &Ended) -> Result<()> {
    if let (Some(reason), true) = (ended.failure(), output.style != Style::Json) {
        let name = if ended.source.is_empty() { inputs::STDIN } else { &ended.source };
        let line = format!("{name}: {reason}");
        match bar {
            Some(bar) => bar.line(&format!("failed: {line}")),
            None => output.warn(&line)?,
        }
    }
    match output.style {
        Style::Json => output.json(&ended.to_json()),
        Style::Names => ended.name().map_or(Ok(()), |name| output.line(name)),
        Style::People if !ended.has_waited() => ended.name().map_or(Ok(()), |name| output.line(name)),
        Style::People => Ok(()),
    }
}
