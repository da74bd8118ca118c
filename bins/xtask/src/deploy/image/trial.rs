//! Runs an image as a container engine would: as its user, on a root file system that cannot be written.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::tree::{PATH, Tree, namespaces};
use crate::{
    deploy::dockerfile::{Stage, Variables, assignments},
    remove_dir,
};

/// The longest time until a server must be healthy, in seconds.
const START: u32 = 60;

/// Runs a command in the tree `$1` as the user `$2`, in the working folder `$3`, which is a volume from `$4`. The network
/// has the loopback interface alone.
const IN_IMAGE: &str = r#"
set -eu
tree=$1 user=$2 folder=$3 volume=$4
shift 4
ip link set lo up
mount --bind "$tree" "$tree"
mount --bind "$volume" "$tree$folder"
mount -t tmpfs -o mode=1777,nosuid,nodev,noexec tmpfs "$tree/tmp"
mount -t proc proc "$tree/proc"
mount --rbind /dev "$tree/dev"
mount -o remount,bind,ro "$tree"
if touch "$tree/written" 2>/dev/null; then echo "the root file system can be written" >&2; exit 1; fi
cd "$tree$folder"
exec chroot --userspec="$user" "$tree" /usr/bin/env -i "$@"
"#;

/// What a container of the image runs, and how.
pub(super) struct Trial {
    user: String,
    folder: String,
    environment: Variables,
    entry: Vec<String>,
    command: Vec<String>,
    health: Vec<String>,
}

impl Trial {
    pub(super) fn of(image: &Stage) -> Result<Self> {
        let mut environment = Variables::new();
        for instruction in image.instructions.iter().filter(|instruction| instruction.keyword == "ENV") {
            environment.extend(assignments(&instruction.text)?);
        }
        let last = |keyword: &str| {
            let found = image.instructions.iter().rfind(|instruction| instruction.keyword == keyword);
            found
                .map(|instruction| instruction.text.as_str())
                .with_context(|| format!("there is no {keyword}"))
        };
        let list =
            |text: &str| serde_json::from_str(text).with_context(|| format!("{text} is no list of strings"));
        let (_, health) = last("HEALTHCHECK")?.split_once("CMD ").context("HEALTHCHECK has no CMD")?;
        Ok(Self {
            user: last("USER")?.to_owned(),
            folder: last("WORKDIR")?.to_owned(),
            environment,
            entry: list(last("ENTRYPOINT")?)?,
            command: list(last("CMD")?)?,
            health: list(health)?,
        })
    }

    /// Checks that the executable starts, that the server accepts the image's configuration, and that it becomes healthy and
    /// stops by a signal. The volume is a folder in `scratch`.
    pub(super) fn run(&self, tree: &Tree, scratch: &Path) -> Result<()> {
        let version = [&self.entry[..], &["--version".to_owned()]].concat();
        let serve = [&self.entry[..], &self.command].concat();
        let check = [&serve[..], &["--check-config".to_owned()]].concat();
        let healthy = format!(
            "{serve} & server=$!; for second in $(seq {START}); do sleep 1; kill -0 $server || exit 1; \
             if {health}; then kill -TERM $server; wait $server; exit $?; fi; done; exit 1",
            serve = shell_line(&serve),
            health = shell_line(&self.health),
        );
        let healthy = ["/bin/sh".to_owned(), "-c".to_owned(), healthy].to_vec();
        for (what, command) in [
            ("the executable starts", version),
            ("the server accepts its configuration", check),
            ("the server becomes healthy, and stops by a signal", healthy),
        ] {
            self.run_one(tree, scratch, &command).with_context(|| format!("failed: {what}"))?;
            eprintln!("as the user {}, with a root file system that cannot be written: {what}", self.user);
        }
        Ok(())
    }

    fn run_one(&self, tree: &Tree, scratch: &Path, command: &[String]) -> Result<()> {
        let volume = scratch.join("volume");
        remove_dir(&volume)?;
        fs::create_dir_all(scratch)?;
        // A new volume begins as a copy of the folder in the image.
        Tree::copy_of(&tree.path(&self.folder), &volume)?;
        let mut arguments: Vec<String> =
            vec![tree.folder().display().to_string(), self.user.clone(), self.folder.clone()];
        arguments.push(volume.display().to_string());
        arguments.push(format!("PATH={PATH}"));
        arguments.extend(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        arguments.extend(["/bin/sh", "-c", r#"cd "$0" && exec "$@""#, &self.folder].map(str::to_owned));
        arguments.extend_from_slice(command);
        namespaces(&["--net", "--pid", "--fork"], IN_IMAGE, &arguments)
    }
}

/// The words of a command for a shell.
fn shell_line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_line_keeps_quotation_marks() {
        let words = ["printf", "%s", "it's \"$HOME\""].map(str::to_owned);
        let output = std::process::Command::new("sh").args(["-c", &shell_line(&words)]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's \"$HOME\"");
    }
}
