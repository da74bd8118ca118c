//! The first admin account, and the file with its generated password.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use lkr_auth::{Actor, Auth, AuthOptions, FIRST_ADMIN, generate_password};

use crate::{config::Config, private_file, state::AppOptions, stores::open_redis};

/// The path of the file with a generated password.
pub(crate) fn password_file(data_dir: &Path) -> PathBuf {
    data_dir.join("initial-admin-password")
}

/// Creates the first admin, once in the life of the data folder. A generated password is written to the file before the
/// account is created, so that a crash in between locks nobody out.
pub(crate) async fn ensure(auth: &Auth, file: &Path, configured: Option<&str>) -> Result<()> {
    if auth.is_initialised().await? {
        if auth.account(FIRST_ADMIN).await?.is_none_or(|admin| !admin.must_change_password) {
            remove(file).await;
        } else if tokio::fs::try_exists(file).await.unwrap_or(false) {
            tracing::warn!(username = FIRST_ADMIN, file = %file.display(), "the first admin still has its generated password, which is in the file");
        }
        return Ok(());
    }
    match configured {
        Some(password) => drop(auth.initialise(password, false).await?),
        None => {
            let password = generate_password();
            write_password(file, &password).await?;
            if !auth.initialise(&password, true).await? {
                // Another process was faster; its file has the password.
                remove(file).await;
                return Ok(());
            }
            tracing::warn!(username = FIRST_ADMIN, file = %file.display(), "created the first admin; its generated password is in the file");
        }
    }
    Ok(())
}

/// Gives the account `admin` a generated password, for an operator who is locked out. The password is written to the file
/// before it takes effect, so that a crash in between changes nothing.
///
/// # Errors
/// If there is no data folder, a server has it open, or Redis cannot be reached.
pub(crate) async fn reset(config: &Config) -> Result<PathBuf> {
    let folder = config.data_dir.display();
    let state = match config.is_shared() {
        // Servers may use it meanwhile.
        true => open_redis(config).await?,
        false => lkr::open_state(&config.data_dir).await.map_err(|error| match error.kind() {
            lkr::ErrorKind::Conflict => anyhow!(error).context(format!(
                "the data folder {folder} is in use by another process; stop the server first"
            )),
            _ => anyhow!(error),
        })?,
    };
    let auth = Auth::new(state, &AuthOptions::default())?;
    let (file, password) = (password_file(&config.data_dir), generate_password());
    write_password(&file, &password).await?;
    auth.reset_admin(&password, Actor::program("lkr-server reset-admin")).await?;
    Ok(file)
}

/// Removes the file with the first admin's password after that password was changed.
pub(crate) async fn remove_password_file(options: &AppOptions, username: &str) {
    if let Some(file) = &options.initial_password_file
        && username.eq_ignore_ascii_case(FIRST_ADMIN)
    {
        remove(file).await;
    }
}

async fn remove(file: &Path) {
    match tokio::fs::remove_file(file).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = %file.display(), "cannot remove the file with the first admin's password");
        }
        _ => {}
    }
}

async fn write_password(file: &Path, password: &str) -> Result<()> {
    let (to, text) = (file.to_path_buf(), password.to_owned());
    let written = tokio::task::spawn_blocking(move || private_file::write(&to, &text)).await?;
    written.with_context(|| format!("cannot write {}", file.display()))
}
