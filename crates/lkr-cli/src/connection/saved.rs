//! What `lkr login` keeps: a file in the configuration folder of the system, which only its owner can read.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};

/// The saved logins, by the address of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLogins {
    /// The server of the last login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<String>,
    #[serde(default)]
    pub(crate) servers: BTreeMap<String, SavedLogin>,
}

/// The login to one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLogin {
    pub(crate) username: String,
    /// An API key or access token.
    pub(crate) token: String,
    /// The id of the API key, if `lkr login` made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_id: Option<String>,
}

impl SavedLogins {
    /// Reads the file; no logins if there is none, or the account of the system has no home folder.
    pub(crate) fn read() -> Result<Self> {
        Self::read_if_any(path().ok().as_deref())
    }

    /// Writes the file, and returns its path.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        let path = path()?;
        self.write_to(&path).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    fn read_if_any(path: Option<&Path>) -> Result<Self> {
        path.map_or_else(|| Ok(Self::default()), Self::read_from)
    }

    fn read_from(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        toml::from_str(&text).with_context(|| {
            format!("{} is damaged; 'lkr login' after its removal makes it again", path.display())
        })
    }

    /// Replaces the file in one step, readable by its owner only from the beginning.
    fn write_to(&self, path: &Path) -> Result<()> {
        let folder = path.parent().context("the file is in a folder")?;
        fs::create_dir_all(folder)?;
        // The library creates temporary files with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(toml::to_string(self)?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

fn path() -> Result<PathBuf> {
    let folders = etcetera::choose_base_strategy().context("find the configuration folder")?;
    Ok(folders.config_dir().join("lkr").join("logins.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_without_a_home_folder_has_no_logins() {
        assert_eq!(SavedLogins::read_if_any(None).unwrap(), SavedLogins::default());
    }

    #[test]
    fn logins_are_read_back_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lkr/logins.toml");
        assert_eq!(SavedLogins::read_from(&path).unwrap(), SavedLogins::default());
        let login = |key_id| SavedLogin { username: "eva".into(), token: "lkr_1".into(), key_id };
        let mut logins = SavedLogins { default: Some("http://a:1".into()), ..SavedLogins::default() };
        logins.servers.insert("http://a:1".into(), login(Some("k".into())));
        logins.servers.insert("https://b".into(), login(None));
        logins.write_to(&path).unwrap();
        assert_eq!(SavedLogins::read_from(&path).unwrap(), logins);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "servers = 1").unwrap();
        let error = format!("{:#}", SavedLogins::read_from(&path).unwrap_err());
        assert!(error.contains("logins.toml"), "{error}");
    }
}
