//! The key that seals stored secrets, and its file.

use std::{io, path::Path};

use anyhow::{Context, Result, anyhow};
use lkr_settings::SealingKey;

use crate::{config::Config, private_file};

/// The configured key, or the key in `<data_dir>/secret.key`. The file is created if it is missing.
pub(crate) async fn load(config: &Config) -> Result<SealingKey> {
    if let Some(hex) = &config.secret_key {
        return SealingKey::from_hex(hex).map_err(|error| anyhow!(error));
    }
    let file = config.data_dir.join("secret.key");
    let name = file.display().to_string();
    tokio::task::spawn_blocking(move || read_or_create(&file))
        .await?
        .with_context(|| format!("cannot use the secret key file {name}"))
}

fn read_or_create(file: &Path) -> Result<SealingKey> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            make_private(file)?;
            SealingKey::from_hex(&text).map_err(|error| anyhow!(error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = SealingKey::generate();
            private_file::write(file, &key.to_hex())?;
            Ok(key)
        }
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
