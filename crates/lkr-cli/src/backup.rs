//! `lkr backup` and `lkr restore`.

use std::{
    env, fs,
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use lkr::{
    ErrorKind, Folders,
    backup::{BackupProblems, BackupSummary, RestoreSummary, add_secret_key, open_backup, restore, verify},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::{
    fs::File,
    io::{AsyncWrite, BufReader, BufWriter},
};

use crate::{
    connection::Login,
    exit::{Exit, not_found, usage},
    folders::FolderArgs,
    terminal::{Output, OutputArgs, Style, bytes_bar, plural, size},
};

/// The name of the standard output.
const STDOUT: &str = "-";

/// How the names of unfinished archives begin.
const DRAFT: &str = ".lkr-backup-";

/// An unfinished archive that is not locked, and was not written to for so long, is of a backup that was interrupted.
const DRAFT_AGE: Duration = Duration::from_secs(3_600);

/// The arguments of `lkr backup`. With a login, the server makes the backup; without one, the command reads folders
/// that no server has open.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// Write the archive to this file, which must not exist, or to the standard output if it is -.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
    /// Include the key that seals stored secrets. Anyone with the archive can then read them. If a server makes the backup,
    /// --data-dir names the folder with its key.
    #[arg(long)]
    with_secret_key: bool,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    shown: OutputArgs,
}

/// The arguments of `lkr restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Restore this archive.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    #[command(flatten)]
    folders: FolderArgs,
    #[command(flatten)]
    shown: OutputArgs,
}

/// Makes a backup. The archive is read and verified before it gets its name, or is written to the standard output. Fails if data
/// is missing or damaged; the archive then contains the rest.
pub(crate) fn run_backup(args: &BackupArgs) -> Result<ExitCode> {
    let shown = args.shown.output();
    let is_piped = args.output == Path::new(STDOUT);
    if is_piped && io::stdout().is_terminal() {
        return Err(usage("an archive is not shown in a terminal; redirect the output or name a file"));
    }
    ensure!(is_piped || !args.output.exists(), "{} exists already", args.output.display());
    let archive = runtime()?.block_on(archive(args, &shown, is_piped))?;
    let length = archive.as_file().metadata()?.len();
    let bar = bytes_bar(&shown, Some(length), "verifying");
    let verified = runtime()?
        .block_on(async { anyhow::Ok(verify(bar.wrap_async_read(reader(archive.path()).await?)).await?) });
    bar.finish_and_clear();
    let BackupSummary { files, bytes, problems } = verified?;
    if is_piped {
        let mut out = io::stdout().lock();
        io::copy(&mut archive.reopen()?, &mut out)?;
        out.flush()?;
    } else {
        let kept = archive.persist_noclobber(&args.output);
        kept.with_context(|| format!("keep the archive as {}", args.output.display()))?;
    }
    let name = args.output.display().to_string();
    let answer = with_problems(json!({"file": name, "files": files, "bytes": bytes}), &problems);
    let to = if is_piped { "the standard output" } else { &name };
    let sentence = format!("{}, {} in {to}", plural(files, "file"), size(bytes));
    match shown.style {
        // The standard output is the archive.
        Style::Json if is_piped => writeln!(io::stderr(), "{answer}")?,
        _ if is_piped => shown.note(&sentence)?,
        _ => shown.changed(&answer, &name, &sentence)?,
    }
    print_problems(&shown, &problems)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes an archive in a temporary file, which its owner alone can read: beside the file that it becomes, or in the system's
/// folder of temporary files.
async fn archive(args: &BackupArgs, shown: &Output, is_piped: bool) -> Result<NamedTempFile> {
    let BackupArgs { login, output, folders, with_secret_key, .. } = args;
    let beside = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = if is_piped { env::temp_dir() } else { beside.to_owned() };
    remove_stale_drafts(&folder);
    let mut archive = new_draft(&folder)?;
    let from_server = login.has_credential_flag()
        || login.has_server_flag()
        || (!folders.has_flag() && login.names_server()?);
    if from_server && *with_secret_key && !folders.has_flag() {
        return Err(usage(
            "a server does not send its secret key; say with --data-dir in which folder it is",
        ));
    }
    let bar = bytes_bar(shown, None, "backing up");
    if !from_server {
        from_folders(
            &folders.find_embedded("use --server")?,
            *with_secret_key,
            bar.wrap_async_write(writer(&archive)?),
        )
        .await?;
    } else {
        login.log_in()?.download("/backup", &mut bar.wrap_write(archive.as_file_mut()))?;
        if *with_secret_key {
            let without_key = std::mem::replace(&mut archive, new_draft(&folder)?);
            let (from, mut to) = (reader(without_key.path()).await?, writer(&archive)?);
            add_secret_key(from, &mut to, &folders.find()?).await?;
        }
    }
    bar.finish_and_clear();
    archive.as_file().sync_all()?;
    Ok(archive)
}

/// A temporary file in a folder, locked as long as it is used.
fn new_draft(folder: &Path) -> Result<NamedTempFile> {
    let draft = tempfile::Builder::new().prefix(DRAFT).tempfile_in(folder);
    let draft = draft.with_context(|| folder.display().to_string())?;
    // Some file systems have no locks. Then drafts in use look like stale ones, but for their age.
    let _ = draft.as_file().try_lock();
    Ok(draft)
}

/// Removes what interrupted backups left in a folder. A cron job with a time limit would fill the disk otherwise.
fn remove_stale_drafts(folder: &Path) {
    let is_stale = |draft: &fs::DirEntry| -> io::Result<bool> {
        // Opening a pipe of somebody else would wait.
        if !draft.file_type()?.is_file() {
            return Ok(false);
        }
        let file = fs::File::open(draft.path())?;
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        Ok(age > DRAFT_AGE && file.try_lock().is_ok())
    };
    let drafts = folder.read_dir().into_iter().flatten().flatten();
    for draft in drafts.filter(|draft| draft.file_name().to_string_lossy().starts_with(DRAFT)) {
        if is_stale(&draft).unwrap_or(false) {
            // It may be somebody else's.
            let _ = fs::remove_file(draft.path());
        }
    }
}

/// Restores an archive.
pub(crate) fn run_restore(args: &RestoreArgs) -> Result<ExitCode> {
    let shown = args.shown.output();
    let folders = args.folders.find()?;
    let restored = runtime()?.block_on(async {
        let from = reader(&args.archive).await?;
        let bar = bytes_bar(&shown, Some(from.get_ref().metadata().await?.len()), "restoring");
        let restored = restore(bar.wrap_async_read(from), &folders).await;
        bar.finish_and_clear();
        anyhow::Ok(restored?)
    });
    let RestoreSummary { files, bytes, problems, with_secret_key } = restored?;
    print_problems(&shown, &problems)?;
    if !with_secret_key {
        shown.warn("the archive has no secret key: keep the former key, or set stored API keys again")?;
    }
    let name = folders.data_dir.display().to_string();
    let answer =
        json!({"data_dir": name, "files": files, "bytes": bytes, "with_secret_key": with_secret_key});
    let sentence = format!("{}, {} into {name}", plural(files, "file"), size(bytes));
    shown.changed(&with_problems(answer, &problems), &name, &sentence)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { Exit::Partly.into() })
}

/// A summary with what is missing and damaged.
fn with_problems(mut summary: Value, problems: &BackupProblems) -> Value {
    let BackupProblems { missing, damaged } = problems;
    if let Some(summary) = summary.as_object_mut() {
        summary.insert("missing".to_owned(), json!(missing));
        summary.insert("damaged".to_owned(), json!(damaged));
    }
    summary
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Makes a backup of a closed knowledge base.
async fn from_folders(
    folders: &Folders,
    with_secret_key: bool,
    mut to: impl AsyncWrite + Unpin + Send,
) -> Result<()> {
    let backup = open_backup(folders).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            anyhow!("{error}: give --password-file or --token to let the server make the backup")
        }
        ErrorKind::NotFound => not_found(error.to_string()),
        _ => anyhow!(error),
    })?;
    let backup = if with_secret_key { backup.with_secret_key(folders).await? } else { backup };
    backup.write(&mut to).await?;
    Ok(())
}

async fn reader(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => not_found(format!("{}: {error}", path.display())),
        _ => anyhow!(error).context(path.display().to_string()),
    })?;
    Ok(BufReader::new(file))
}

fn writer(to: &NamedTempFile) -> Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(256 * 1024, File::from_std(to.reopen()?)))
}

fn print_problems(shown: &Output, problems: &BackupProblems) -> Result<()> {
    let BackupProblems { missing, damaged } = problems;
    missing.iter().try_for_each(|path| shown.warn(&format!("missing: {path}")))?;
    damaged.iter().try_for_each(|path| shown.warn(&format!("damaged: {path}")))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, time::SystemTime};

    use clap::Parser as _;
    use lkr::{Metadata, NewDocument};

    use super::*;
    use crate::{exit::exit_of, local_kb::LocalKnowledgeBase};

    #[derive(Debug, clap::Parser)]
    struct RestoreLine {
        #[command(flatten)]
        args: RestoreArgs,
    }

    #[test]
    fn absent_archive_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let absent = runtime().unwrap().block_on(reader(&folder.path().join("absent.tar"))).unwrap_err();
        assert_eq!(exit_of(&absent), Exit::NotFound, "{absent}");
        assert!(absent.to_string().contains("absent.tar"), "{absent}");
    }

    #[test]
    fn folder_without_knowledge_base_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::new(folder.path());
        let copied = from_folders(&folders, false, tokio::io::sink());
        let absent = runtime().unwrap().block_on(copied).unwrap_err();
        assert_eq!(exit_of(&absent), Exit::NotFound, "{absent}");
        assert!(absent.to_string().contains("no knowledge base in"), "{absent}");
    }

    #[test]
    fn restore_of_an_archive_that_lacks_a_text_is_done_partly() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        runtime().unwrap().block_on(async {
            let from = LocalKnowledgeBase::create(&path("kb"), None).await.unwrap();
            let document = NewDocument {
                title: "Moons".to_owned(),
                source: "moons.md".to_owned(),
                text: "Io is a moon.".to_owned(),
                metadata: Metadata::new(),
            };
            from.kb.add(document).await.unwrap();
            from.close().await;
            fs::remove_dir_all(path("kb/blobs/texts")).unwrap();
            let archive = File::create(path("kb.tar")).await.unwrap();
            from_folders(&Folders::new(path("kb")), false, archive).await.unwrap();
        });
        let mut line: Vec<OsString> = vec!["restore".into(), path("kb.tar").into(), "-q".into()];
        for (flag, name) in [("--data-dir", "to"), ("--blobs", "to/blobs"), ("--upload-dir", "to/uploads")] {
            line.extend([OsString::from(flag), path(name).into_os_string()]);
        }
        let exit = run_restore(&RestoreLine::parse_from(line).args).unwrap();
        assert_eq!(format!("{exit:?}"), format!("{:?}", ExitCode::from(Exit::Partly)));
        assert!(path("to/store").is_dir());
    }

    #[test]
    fn drafts_of_interrupted_backups_are_removed_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * DRAFT_AGE;
        let put = |name: &str, modified: SystemTime| {
            let path = folder.path().join(name);
            fs::File::create(&path).unwrap().set_modified(modified).unwrap();
            path
        };
        let stale = put(".lkr-backup-abc", long_ago);
        let (young, foreign) = (put(".lkr-backup-def", SystemTime::now()), put("backup.tar", long_ago));
        let used = new_draft(folder.path()).unwrap();
        used.as_file().set_modified(long_ago).unwrap();
        remove_stale_drafts(folder.path());
        let left = [stale.as_path(), &young, &foreign, used.path()].map(Path::exists);
        assert_eq!(left, [false, true, true, true]);
    }
}
