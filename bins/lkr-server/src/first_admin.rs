//! The first admin, and the file with its password.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use lkr_auth::{Auth, FIRST_ADMIN, generate_password};

/// Where a generated password is written.
pub(crate) fn password_file(data_dir: &Path) -> PathBuf {
    data_dir.join("initial-admin-password")
}

/// Makes the first admin, once in the life of the data folder. A generated password is written down before the
/// account is made, so that nobody is locked out by a crash in between.
pub(crate) async fn ensure(auth: &Auth, file: &Path, given: Option<&str>) -> Result<()> {
    if auth.is_initialised().await? {
        if auth.account(FIRST_ADMIN).await?.is_some_and(|admin| !admin.must_change_password) {
            forget_password(file, FIRST_ADMIN).await;
        }
        return Ok(());
    }
    match given {
        Some(password) => drop(auth.initialise(password, false).await?),
        None => {
            let password = generate_password();
            let (to, text) = (file.to_path_buf(), password.clone());
            tokio::task::spawn_blocking(move || write(&to, &text))
                .await?
                .with_context(|| format!("cannot write {}", file.display()))?;
            auth.initialise(&password, true).await?;
            tracing::warn!(username = FIRST_ADMIN, file = %file.display(), "the first admin's password is in this file");
        }
    }
    Ok(())
}

/// Removes the file once the first admin has changed its password.
pub(crate) async fn forget_password(file: &Path, username: &str) {
    if !username.eq_ignore_ascii_case(FIRST_ADMIN) {
        return;
    }
    match tokio::fs::remove_file(file).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = %file.display(), "the initial password's file cannot be removed");
        }
        _ => {}
    }
}

/// Writes a file that only its owner can read, to the disk.
fn write(file: &Path, password: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // One that a crash left behind may be readable by others.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options.open(file)?;
    writeln!(file, "{password}")?;
    file.sync_all()
}
