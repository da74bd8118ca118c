//! `lkr backup` and `lkr restore`: everything as one file, and back.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, ensure};
use lkr::{
    ErrorKind, Folders,
    backup::{BackedUp, Restored, add_secret_key, open_backup, restore, verify},
};
use tokio::{
    fs::File,
    io::{AsyncWriteExt, BufReader, BufWriter},
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

/// Has a server make a backup or, where none has the folder open, makes it. What was written is read once more before
/// it is given its name.
pub(crate) fn run_backup(args: &BackupArgs) -> Result<ExitCode> {
    let BackupArgs { login, output, folders, with_secret_key } = args;
    ensure!(!output.exists(), "{} is there already", output.display());
    let draft = output.with_added_extension("part");
    let folders = folders.find()?;
    let done = runtime()?.block_on(async {
        if login.can_log_in() {
            download(login, &draft)?;
            if *with_secret_key {
                add_key(&draft, &folders).await?;
            }
        } else {
            from_folders(&folders, *with_secret_key, &draft).await?;
        }
        let done = verify(BufReader::new(File::open(&draft).await?)).await?;
        fs::rename(&draft, output)?;
        anyhow::Ok(done)
    });
    if done.is_err() {
        let _ = fs::remove_file(&draft);
    }
    let BackedUp { files, bytes, missing } = done?;
    say_missing(&missing)?;
    writeln!(io::stdout(), "{files} files, {} in {}", size(bytes), output.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Puts an archive back.
pub(crate) fn run_restore(args: &RestoreArgs) -> Result<ExitCode> {
    let RestoreArgs { archive, folders } = args;
    let folders = folders.find()?;
    let restored = runtime()?.block_on(async {
        let file = File::open(archive).await.with_context(|| archive.display().to_string())?;
        anyhow::Ok(restore(BufReader::new(file), &folders).await?)
    });
    let Restored { files, bytes, missing, with_secret_key } = restored?;
    say_missing(&missing)?;
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
async fn from_folders(folders: &Folders, with_secret_key: bool, to: &Path) -> Result<()> {
    let backup = open_backup(folders).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            anyhow!("{error}: give --password-file or --token, and the server makes the backup")
        }
        _ => anyhow!(error),
    })?;
    let backup = if with_secret_key { backup.with_secret_key(folders).await? } else { backup };
    let mut file = create(to).await?;
    backup.write(&mut file).await?;
    Ok(file.into_inner().sync_all().await?)
}

/// Asks the server.
fn download(login: &Login, to: &Path) -> Result<()> {
    let mut file = private(to)?;
    login.log_in()?.download("/backup", &mut file)?;
    Ok(file.sync_all()?)
}

async fn add_key(archive: &Path, folders: &Folders) -> Result<()> {
    let with_key = archive.with_added_extension("key");
    let mut file = create(&with_key).await?;
    let added = add_secret_key(BufReader::new(File::open(archive).await?), &mut file, folders).await;
    if let Err(error) = added {
        let _ = fs::remove_file(&with_key);
        return Err(error.into());
    }
    file.flush().await?;
    file.into_inner().sync_all().await?;
    Ok(fs::rename(with_key, archive)?)
}

/// Makes a file that only its owner can read, in place of one that an earlier try left.
fn private(path: &Path) -> Result<fs::File> {
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).with_context(|| path.display().to_string())
}

async fn create(path: &Path) -> Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(256 * 1024, File::from_std(private(path)?)))
}

fn say_missing(missing: &[String]) -> io::Result<()> {
    missing.iter().try_for_each(|path| writeln!(io::stderr(), "missing: {path}"))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
