//! `lkr migrate`: moves a knowledge base from the stores of one configuration to those of another.

use std::{
    io::{Write, stdout},
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};
use lkr::{
    AllStores, ConfiguredStores, OpenFolder,
    migrate::{MigrateOptions, Migration, Phase, Progress, Report, Stores, is_in_use},
};

use crate::{
    Program,
    terminal::{Bar, Output, OutputArgs},
};

/// The arguments of `lkr migrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file of the server whose documents are moved.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The configuration file of the server that is to have them. Parts that both configurations keep in the same place are
    /// not moved.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Only compare both sides, record by record, point by point and file by file.
    #[arg(long, conflicts_with = "discard")]
    verify: bool,
    /// Give up a migration that is not complete: remove what it copied.
    #[arg(long)]
    discard: bool,
    /// Begin although processes seem to run on the stores. One that was killed counts for a minute.
    #[arg(long)]
    force: bool,
}

/// Moves, compares or discards.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(migrate(args, program))?;
    Ok(ExitCode::SUCCESS)
}

async fn migrate(args: &Args, program: &Program) -> Result<()> {
    let from = (program.stores)(Some(args.from.clone())).await.with_context(|| in_file(&args.from))?;
    let to = (program.stores)(Some(args.to.clone())).await.with_context(|| in_file(&args.to))?;
    from.require_embedded().with_context(|| in_file(&args.from))?;
    if args.verify || args.discard {
        to.require_embedded().with_context(|| in_file(&args.to))?;
    }
    let moves = Moves::between(&from, &to)?;
    for (stores, file) in [(&from, &args.from), (&to, &args.to)] {
        let folder = stores.folders.data_dir.display();
        match stores.unmerged {
            Some(0) => {}
            Some(changes) => bail!(
                "{changes} changes made while {} was away wait in {folder}; start a server with {} once, so that they are merged",
                stores.records,
                file.display()
            ),
            None => bail!("a process uses the data folder {folder}; stop it first"),
        }
    }
    let mut folder: Option<OpenFolder> = None;
    let source = from.stores.clone().or_embedded(&from.folders, &mut folder).await?;
    if from.folders.data_dir != to.folders.data_dir {
        folder = None;
    }
    let target = to.stores.clone().or_embedded(&to.folders, &mut folder).await?;
    if !args.force {
        for (state, place) in [(&source.records, &from.records), (&target.records, &to.records)] {
            let running = is_in_use(&**state).await?.len();
            if running > 0 {
                bail!(
                    "{running} processes seem to run on {place}; stop them, or use --force if they were killed"
                );
            }
        }
    }
    let spool = std::env::temp_dir();
    let mut options = MigrateOptions::new(spool);
    options.records = moves.records;
    let migration = Migration::new(moves.side(source), moves.side(target), options)?;
    let shown = ShownProgress { output: OutputArgs::default().output(), bar: Mutex::default() };
    if args.discard {
        let is_discarded = migration.discard(&|progress| shown.update(&progress)).await?;
        shown.finish();
        let text = if is_discarded { "removed what was copied" } else { "there is no migration to give up" };
        return Ok(writeln!(stdout(), "{text}")?);
    }
    let report = match args.verify {
        true => migration.verify(&|progress| shown.update(&progress)).await,
        false => migration.run(&|progress| shown.update(&progress)).await,
    };
    shown.finish();
    print(&report?, &moves, args.verify)
}

fn in_file(file: &std::path::Path) -> String {
    format!("cannot use the configuration in {}", file.display())
}

/// What is in another place in the target.
struct Moves {
    records: bool,
    points: bool,
    blobs: bool,
}

impl Moves {
    fn between(from: &ConfiguredStores, to: &ConfiguredStores) -> Result<Self> {
        let moves = Self {
            records: from.records != to.records,
            points: from.points != to.points,
            blobs: from.blobs != to.blobs,
        };
        if !moves.records && !moves.points && !moves.blobs {
            bail!("both configurations keep everything in the same place: there is nothing to move");
        }
        if moves.records && from.secret_key.is_none() {
            bail!(
                "the source has no key that seals stored secrets: there is none in {}, and its configuration names none",
                from.folders.data_dir.join("secret.key").display()
            );
        }
        if moves.records && from.secret_key != to.secret_key {
            bail!(
                "the keys that seal stored secrets differ: set secret_key in both files to the key of the source, which is in \
                 {} unless its configuration names one",
                from.folders.data_dir.join("secret.key").display()
            );
        }
        Ok(moves)
    }

    fn side(&self, stores: AllStores) -> Stores {
        let AllStores { vectors, records, blobs, originals } = stores;
        Stores {
            state: records,
            vectors: self.points.then_some(vectors),
            texts: self.blobs.then_some(blobs),
            originals: self.blobs.then_some(originals),
        }
    }
}

/// The bar of the phase that a migration is in.
struct ShownProgress {
    output: Output,
    bar: Mutex<Option<(Phase, Bar)>>,
}

impl ShownProgress {
    fn update(&self, progress: &Progress) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let total = progress.total.unwrap_or(progress.done);
        if bar.as_ref().is_none_or(|(phase, _)| *phase != progress.phase) {
            if let Some((_, earlier)) = bar.take() {
                earlier.finish();
            }
            *bar = Some((progress.phase, Bar::new(&self.output, total, &progress.phase.to_string())));
        }
        if let Some((_, bar)) = &*bar {
            bar.set_total(total);
            bar.update(progress.done, progress.remaining());
        }
    }

    fn finish(&self) {
        if let Some((_, bar)) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish();
        }
    }
}

fn print(report: &Report, moves: &Moves, only_compared: bool) -> Result<()> {
    let mut out = stdout();
    let sum = |counts: &std::collections::BTreeMap<String, u64>| counts.values().sum::<u64>();
    let done = if only_compared { "equal on both sides" } else { "moved, and equal on both sides" };
    if moves.records {
        let left_out = sum(&report.left_out);
        writeln!(
            out,
            "{} records {done}; {left_out} of running processes or soon expired were left out",
            sum(&report.records)
        )?;
    }
    if moves.points {
        writeln!(out, "{} points in {} collections {done}", sum(&report.points), report.points.len())?;
    }
    if moves.blobs {
        writeln!(
            out,
            "{} texts and {} originals, {} bytes, {done}",
            report.texts, report.originals, report.bytes
        )?;
    }
    Ok(())
}
