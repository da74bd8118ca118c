//! The key that seals stored secrets, and its file.

use std::{io, path::Path};

use anyhow::{Context, Result, anyhow};
use lkr_settings::SealingKey;

use crate::{config::Config, private_file};

/// The configured key, or the key in `<data_dir>/secret.key`. The file is created if it is missing.
pub(crate) async fn load(config: &Config) -> Result<SealingKey> {
    match configured(config)? {
        Some(key) => Ok(key),
        None => in_file(config, read_or_create).await,
    }
}

/// The same; `None` if the file is missing.
pub(crate) async fn existing(config: &Config) -> Result<Option<SealingKey>> {
    match configured(config)? {
        Some(key) => Ok(Some(key)),
        None => in_file(config, read).await,
    }
}

fn configured(config: &Config) -> Result<Option<SealingKey>> {
    config
        .secret_key
        .as_deref()
        .map(|hex| SealingKey::from_hex(hex).map_err(|error| anyhow!(error)))
        .transpose()
}

async fn in_file<T: Send + 'static>(config: &Config, read: fn(&Path) -> Result<T>) -> Result<T> {
    let file = config.data_dir.join("secret.key");
    let name = file.display().to_string();
    tokio::task::spawn_blocking(move || read(&file))
        .await?
        .with_context(|| format!("cannot use the secret key file {name}"))
}

fn read_or_create(file: &Path) -> Result<SealingKey> {
    if let Some(key) = read(file)? {
        return Ok(key);
    }
    let key = SealingKey::generate();
    private_file::write(file, &key.to_hex())?;
    Ok(key)
}

/// The key in a file; `None` if there is no file.
fn read(file: &Path) -> Result<Option<SealingKey>> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            make_private(file)?;
            SealingKey::from_hex(&text).map(Some).map_err(|error| anyhow!(error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the permissions of others from the file.
fn make_private(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(file = %file.display(), "secret key file was readable by others; changed its mode to 0600");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}
