//! The first admin, and the file with its password.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use lkr_auth::{Actor, Auth, AuthOptions, FIRST_ADMIN, generate_password};

use crate::{config::Config, private_file, state::AppOptions};

/// Where a generated password is written.
pub(crate) fn password_file(data_dir: &Path) -> PathBuf {
    data_dir.join("initial-admin-password")
}

/// Makes the first admin, once in the life of the data folder. A generated password is written down before the
/// account is made, so that nobody is locked out by a crash in between.
pub(crate) async fn ensure(auth: &Auth, file: &Path, given: Option<&str>) -> Result<()> {
    if auth.is_initialised().await? {
        if auth.account(FIRST_ADMIN).await?.is_none_or(|admin| !admin.must_change_password) {
            remove(file).await;
        }
        return Ok(());
    }
    match given {
        Some(password) => drop(auth.initialise(password, false).await?),
        None => {
            let password = generate_password();
            write_down(file, &password).await?;
            auth.initialise(&password, true).await?;
            tracing::warn!(username = FIRST_ADMIN, file = %file.display(), "the first admin's password is in this file");
        }
    }
    Ok(())
}

/// Lets the account `admin` in again, with a password that is written down: for those who are locked out. It is
/// written before it counts, so that a crash in between leaves nothing worse than before.
///
/// # Errors
/// Where there is no data folder, or a server has it open.
pub async fn reset(config: &Config) -> Result<PathBuf> {
    let folder = config.data_dir.display();
    let state = lkr::open_state(&config.data_dir).await.map_err(|error| match error.kind() {
        lkr::ErrorKind::Conflict => {
            anyhow!(error).context(format!("the data folder {folder} is in use: stop the server first"))
        }
        _ => anyhow!(error),
    })?;
    let auth = Auth::new(state, &AuthOptions::default())?;
    let (file, password) = (password_file(&config.data_dir), generate_password());
    write_down(&file, &password).await?;
    auth.reset_admin(&password, Actor::program("lkr-server reset-admin")).await?;
    Ok(file)
}

/// Removes the file once the password in it is not the first admin's any more.
pub(crate) async fn forget_password(options: &AppOptions, username: &str) {
    if let Some(file) = &options.initial_password_file
        && username.eq_ignore_ascii_case(FIRST_ADMIN)
    {
        remove(file).await;
    }
}

async fn remove(file: &Path) {
    match tokio::fs::remove_file(file).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = %file.display(), "the initial password's file cannot be removed");
        }
        _ => {}
    }
}

async fn write_down(file: &Path, password: &str) -> Result<()> {
    let (to, text) = (file.to_path_buf(), password.to_owned());
    let written = tokio::task::spawn_blocking(move || private_file::write(&to, &text)).await?;
    written.with_context(|| format!("cannot write {}", file.display()))
}
