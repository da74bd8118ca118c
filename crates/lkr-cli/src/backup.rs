//! `lkr backup` and `lkr restore`.

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

use crate::{connection::Login, folders::FolderArgs};

/// The arguments of `lkr backup`. With a login, the server makes the backup; without one, the command reads folders
/// that no server has open.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// Write the archive to this file, which must not exist.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
    /// Include the key that seals stored secrets. Anyone with the archive can then read them.
    #[arg(long)]
    with_secret_key: bool,
    #[command(flatten)]
    login: Login,
}

/// The arguments of `lkr restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Restore this archive.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
}

/// Makes a backup. The archive is read and verified before it gets its name. Fails if data is missing or damaged; the
/// archive then contains the rest.
pub(crate) fn run_backup(args: &BackupArgs) -> Result<ExitCode> {
    let BackupArgs { login, output, folders, with_secret_key } = args;
    ensure!(!output.exists(), "{} exists already", output.display());
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file is readable by its owner only.
    let new_draft = || tempfile::Builder::new().prefix(".lkr-backup-").tempfile_in(folder);
    let mut archive = new_draft().with_context(|| folder.display().to_string())?;
    let find_folders = || folders.find();
    let from_server = login.has_credential_flag()
        || login.has_server_flag()
        || (!folders.has_flag() && login.names_server()?);
    let BackupSummary { files, bytes, problems } = runtime()?.block_on(async {
        if !from_server {
            from_folders(&find_folders()?, *with_secret_key, &archive).await?;
        } else {
            login.log_in()?.download("/backup", archive.as_file_mut())?;
            if *with_secret_key {
                let without_key = std::mem::replace(&mut archive, new_draft()?);
                let (from, mut to) = (reader(without_key.path()).await?, writer(&archive)?);
                add_secret_key(from, &mut to, &find_folders()?).await?;
            }
        }
        archive.as_file().sync_all()?;
        anyhow::Ok(verify(reader(archive.path()).await?).await?)
    })?;
    archive.persist_noclobber(output)?;
    writeln!(io::stdout(), "{files} files, {} in {}", size(bytes), output.display())?;
    print_problems(&problems)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Restores an archive.
pub(crate) fn run_restore(args: &RestoreArgs) -> Result<ExitCode> {
    let RestoreArgs { archive, folders } = args;
    let folders = folders.find()?;
    let restored =
        runtime()?.block_on(async { anyhow::Ok(restore(reader(archive).await?, &folders).await?) });
    let RestoreSummary { files, bytes, problems, with_secret_key } = restored?;
    print_problems(&problems)?;
    if !with_secret_key {
        let warning = "the archive has no secret key: keep the former key, or set stored API keys again";
        writeln!(io::stderr(), "{warning}")?;
    }
    writeln!(io::stdout(), "{files} files, {} into {}", size(bytes), folders.data_dir.display())?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Makes a backup of a closed knowledge base.
async fn from_folders(folders: &Folders, with_secret_key: bool, to: &NamedTempFile) -> Result<()> {
    let backup = open_backup(folders).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            anyhow!("{error}: give --password-file or --token to let the server make the backup")
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

fn print_problems(problems: &BackupProblems) -> io::Result<()> {
    let BackupProblems { missing, damaged } = problems;
    missing.iter().try_for_each(|path| writeln!(io::stderr(), "missing: {path}"))?;
    damaged.iter().try_for_each(|path| writeln!(io::stderr(), "damaged: {path}"))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
