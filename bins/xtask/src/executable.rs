//! The executable `lkr` and its second name `lkr-server`.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result, bail};

use crate::{cargo, root, run};

/// The package whose only target is the executable.
pub(crate) const PACKAGE: &str = "lkr-bin";

/// The command of `lkr` that is the server.
pub(crate) const SERVE: &str = "serve";

/// `cargo xtask build [--profile P]`: builds the executable and gives it both names.
pub(crate) fn build(arguments: &[OsString]) -> Result<()> {
    let profile = match arguments {
        [] => "dev",
        [flag, profile] if flag == "--profile" => profile.to_str().context("a profile is UTF-8")?,
        _ => bail!("usage: cargo xtask build [--profile PROFILE]"),
    };
    build_profile(profile).map(drop)
}

/// Builds the executable with a profile, and returns the folder that holds both names.
pub(crate) fn build_profile(profile: &str) -> Result<PathBuf> {
    run(cargo(&["build", "--package", PACKAGE, "--profile", profile])?)?;
    let dir = target_dir(profile)?;
    link_names(&dir)?;
    Ok(dir)
}

/// `cargo xtask install [ROOT]`: builds the `dist` profile and installs both names into `ROOT/bin`, by default where `cargo install` installs.
pub(crate) fn install(arguments: &[OsString]) -> Result<()> {
    let root = match arguments {
        [] => default_install_root()?,
        [root] => std::path::absolute(root)?,
        _ => bail!("usage: cargo xtask install [ROOT]"),
    };
    let mut install = cargo(&["install", "--locked", "--profile", "dist", "--path", "bins/lkr", "--root"])?;
    install.arg(&root);
    run(install)?;
    link_names(&root.join("bin"))
}

/// Links `lkr-server` to `lkr` in a folder, in place of an older link. The link is a hard one: programs that resolve
/// symbolic links would start the executable under its other name.
pub(crate) fn link_names(dir: &Path) -> Result<()> {
    let suffix = env::consts::EXE_SUFFIX;
    let (program, server) = (dir.join(format!("lkr{suffix}")), dir.join(format!("lkr-server{suffix}")));
    // A link under a name of its own first, so that `lkr-server` is never absent.
    let new = dir.join(format!(".lkr-server.{}{suffix}", process::id()));
    remove_file(&new)?;
    fs::hard_link(&program, &new).with_context(|| format!("cannot link {}", program.display()))?;
    fs::rename(&new, &server).with_context(|| format!("cannot link {}", server.display()))?;
    // A rename between two links of one file leaves both.
    remove_file(&new)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Where cargo puts the executables of a profile.
pub(crate) fn target_dir(profile: &str) -> Result<PathBuf> {
    Ok(target_root()?.join(profile_dir(profile)))
}

/// Where cargo puts the executables of a profile for a target that it is told to build for.
pub(crate) fn target_dir_of(target: &str, profile: &str) -> Result<PathBuf> {
    Ok(target_root()?.join(target).join(profile_dir(profile)))
}

fn target_root() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => Ok(std::path::absolute(dir)?),
        None => Ok(root()?.join("target")),
    }
}

/// The name of the folder of a profile.
fn profile_dir(profile: &str) -> &str {
    if profile == "dev" || profile == "test" { "debug" } else { profile }
}

/// The default root of `cargo install`.
fn default_install_root() -> Result<PathBuf> {
    let named = ["CARGO_INSTALL_ROOT", "CARGO_HOME"].into_iter().find_map(env::var_os).map(PathBuf::from);
    let home = || env::home_dir().map(|home| home.join(".cargo"));
    named.or_else(home).context("no home folder; name the folder to install into")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_gives_the_newest_executable_both_names() {
        let dir = env::temp_dir().join(format!("lkr-xtask-link-{}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        let suffix = env::consts::EXE_SUFFIX;
        let (program, server) = (dir.join(format!("lkr{suffix}")), dir.join(format!("lkr-server{suffix}")));
        for content in ["first build", "second build"] {
            let _ = fs::remove_file(&program);
            fs::write(&program, content).unwrap();
            link_names(&dir).unwrap();
            link_names(&dir).unwrap();
            assert_eq!(fs::read_to_string(&server).unwrap(), content);
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing else is left in the folder");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
