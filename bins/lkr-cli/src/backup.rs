//! `lkr backup` and `lkr restore`: everything as one file, and back.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail, ensure};
use lkr::{
    ErrorKind,
    backup::{BackedUp, Folders, Restored, add_secret_key, open_backup, restore, verify},
};
use tokio::{
    fs::File,
    io::{AsyncWriteExt, BufReader, BufWriter},
};

use crate::{folders::FolderArgs, http::Login};

/// What `lkr backup` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    login: Login,
    /// The archive; it must not be there.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The data folder, which is opened where no server has it open.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    folders: FolderArgs,
    /// Add the key that seals stored secrets, from the data folder: whoever has the archive can read them.
    #[arg(long, requires = "data_dir")]
    with_secret_key: bool,
}

/// What `lkr restore` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The archive.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// The data folder.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
}

/// Has a server make a backup or, where none has the folder open, makes it. What was written is read once more before
/// it is given its name.
pub(crate) fn run_backup(args: &BackupArgs) -> Result<ExitCode> {
    let BackupArgs { login, output, data_dir, folders, with_secret_key } = args;
    ensure!(!output.exists(), "{} is there already", output.display());
    let draft = output.with_added_extension("part");
    let folders = data_dir.as_ref().map(|data_dir| folders.with(data_dir));
    let done = runtime()?.block_on(async {
        let key = folders.as_ref().filter(|_| *with_secret_key);
        if !from_folder(folders.as_ref(), key, login.can_log_in(), &draft).await? {
            download(login, &draft)?;
            if let Some(folders) = key {
                add_key(&draft, folders).await?;
            }
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
    let RestoreArgs { archive, data_dir, folders } = args;
    let restored = runtime()?.block_on(async {
        let file = File::open(archive).await.with_context(|| archive.display().to_string())?;
        anyhow::Ok(restore(BufReader::new(file), &folders.with(data_dir)).await?)
    });
    let Restored { files, bytes, missing, with_secret_key } = restored?;
    say_missing(&missing)?;
    if !with_secret_key {
        let without =
            "the archive has no secret key: stored API keys need the one of before, or to be set again";
        writeln!(io::stderr(), "{without}")?;
    }
    writeln!(io::stdout(), "{files} files, {} into {}", size(bytes), data_dir.display())?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Makes the backup of a closed knowledge base; `false` where a server has to be asked.
async fn from_folder(
    folders: Option<&Folders>,
    key: Option<&Folders>,
    can_log_in: bool,
    to: &Path,
) -> Result<bool> {
    let Some(folders) = folders else { return Ok(false) };
    let backup = match open_backup(folders).await {
        Err(error) if error.kind() == ErrorKind::Conflict && can_log_in => return Ok(false),
        Err(error) if error.kind() == ErrorKind::Conflict => {
            bail!("{error}: with --password-file or --token too, the server is asked for the backup")
        }
        opened => opened?,
    };
    let backup = match key {
        Some(folders) => backup.with_secret_key(folders).await?,
        None => backup,
    };
    let mut file = create(to).await?;
    backup.write(&mut file).await?;
    file.into_inner().sync_all().await?;
    Ok(true)
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
