//! `lkr backup` and `lkr restore`: everything as one file, and back.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, ensure};
use lkr::{
    ErrorKind, Folders,
    backup::{BackupProblems, BackupSummary, RestoreSummary, add_secret_key, open_backup, restore, verify},
};
use tempfile::NamedTempFile;
use tokio::{
    fs::File,
    io::{BufReader, BufWriter},
};

use crate::{folders::FolderArgs, http::Login};

/// What `lkr backup` is told. With a login the server is asked; without one it makes the backup of folders that no server
/// has open.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    login: Login,
    /// The archive; it must not be there.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
    /// Add the key that seals stored secrets, from the data folder: whoever has the archive can read them.
    #[arg(long)]
    with_secret_key: bool,
}

/// What `lkr restore` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The archive.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
}

/// Has a server make a backup or, without a login, makes it. What was written is read once more before it is given its
/// name. Fails where something was not as it should be; the rest is in it.
pub(crate) fn run_backup(args: &BackupArgs) -> Result<ExitCode> {
    let BackupArgs { login, output, folders, with_secret_key } = args;
    ensure!(!output.exists(), "{} is there already", output.display());
    let place = output.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only its owner can read it.
    let new_draft = || tempfile::Builder::new().prefix(".lkr-backup-").tempfile_in(place);
    let mut draft = new_draft().with_context(|| place.display().to_string())?;
    let found = || folders.find();
    let BackupSummary { files, bytes, faults } = runtime()?.block_on(async {
        if !login.can_log_in() {
            from_folders(&found()?, *with_secret_key, &draft).await?;
        } else {
            login.log_in()?.download("/backup", draft.as_file_mut())?;
            if *with_secret_key {
                let plain = std::mem::replace(&mut draft, new_draft()?);
                let (from, mut to) = (reader(plain.path()).await?, writer(&draft)?);
                add_secret_key(from, &mut to, &found()?).await?;
            }
        }
        draft.as_file().sync_all()?;
        anyhow::Ok(verify(reader(draft.path()).await?).await?)
    })?;
    draft.persist_noclobber(output)?;
    writeln!(io::stdout(), "{files} files, {} in {}", size(bytes), output.display())?;
    say_faults(&faults)?;
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Puts an archive back.
pub(crate) fn run_restore(args: &RestoreArgs) -> Result<ExitCode> {
    let RestoreArgs { archive, folders } = args;
    let folders = folders.find()?;
    let restored =
        runtime()?.block_on(async { anyhow::Ok(restore(reader(archive).await?, &folders).await?) });
    let RestoreSummary { files, bytes, faults, with_secret_key } = restored?;
    say_faults(&faults)?;
    if !with_secret_key {
        let without =
            "the archive has no secret key: stored API keys need the one of before, or to be set again";
        writeln!(io::stderr(), "{without}")?;
    }
    writeln!(io::stdout(), "{files} files, {} into {}", size(bytes), folders.data_dir.display())?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Makes the backup of a closed knowledge base.
async fn from_folders(folders: &Folders, with_secret_key: bool, to: &NamedTempFile) -> Result<()> {
    let backup = open_backup(folders).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            anyhow!("{error}: give --password-file or --token, and the server makes the backup")
        }
        _ => anyhow!(error),
    })?;
    let backup = if with_secret_key { backup.with_secret_key(folders).await? } else { backup };
    let mut file = writer(to)?;
    backup.write(&mut file).await?;
    Ok(())
}

async fn reader(path: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::new(File::open(path).await.with_context(|| path.display().to_string())?))
}

fn writer(to: &NamedTempFile) -> Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(256 * 1024, File::from_std(to.reopen()?)))
}

fn say_faults(faults: &BackupProblems) -> io::Result<()> {
    let BackupProblems { missing, damaged } = faults;
    missing.iter().try_for_each(|path| writeln!(io::stderr(), "missing: {path}"))?;
    damaged.iter().try_for_each(|path| writeln!(io::stderr(), "damaged: {path}"))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
