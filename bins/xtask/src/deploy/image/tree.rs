//! A folder with the files of an image.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{deploy::dockerfile::Variables, downloading, entries, quietly, remove_dir};

/// Where programs are in an image, unless it says otherwise.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes of a new Debian what its slim images are, after debuerreotype, which makes those: no manuals, translations and lists,
/// and apt and dpkg add none. The only argument is the folder.
const SLIM: &str = r#"
set -eu
cd "$1"
find usr/share/doc -mindepth 1 ! -type d ! -name copyright -delete
find usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf usr/share/man/* usr/share/info/* usr/share/groff/* usr/share/lintian/* usr/share/linda/*
find usr/share/locale -mindepth 1 -maxdepth 1 ! -name locale.alias -exec rm -rf {} +
rm -rf var/lib/apt/lists/* var/cache/apt/* var/cache/debconf/*-old var/cache/ldconfig/aux-cache var/lib/dpkg/*-old var/log/* tmp/*
mkdir -p var/cache/apt/archives/partial var/lib/apt/lists/partial var/log/apt
printf 'path-exclude /usr/share/%s\n' 'doc/*' 'man/*' 'info/*' 'groff/*' 'lintian/*' 'linda/*' 'locale/*' > etc/dpkg/dpkg.cfg.d/docker
printf 'path-include /usr/share/%s\n' 'doc/*/copyright' 'locale/locale.alias' >> etc/dpkg/dpkg.cfg.d/docker
cat > etc/apt/apt.conf.d/docker <<'END'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
END
printf '#!/bin/sh\nexit 101\n' > usr/sbin/policy-rc.d
chmod 0755 usr/sbin/policy-rc.d
: > etc/resolv.conf
: > etc/hostname
: > etc/hosts
"#;

/// Runs a command in the tree `$1`, as a builder does: with the devices, the processes and the name servers of this machine.
const IN_TREE: &str = r#"
set -eu
tree=$1
shift
mount -t proc proc "$tree/proc"
mount --rbind /dev "$tree/dev"
for file in /etc/resolv.conf /etc/hosts; do mount --bind "$file" "$tree$file"; done
exec chroot "$tree" /usr/bin/env -i "$@"
"#;

/// A place from which apt takes packages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AptSource {
    uri: String,
    suite: String,
    component: String,
}

/// Where this machine's apt takes a release of Debian from: the release itself first, then its updates.
pub(super) fn apt_sources(release: &str) -> Result<Vec<AptSource>> {
    let mut targets = Command::new("apt-get");
    targets.args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(CODENAME) $(COMPONENT)",
        "Created-By: Packages",
    ]);
    let output = targets.output().context("cannot run apt-get")?;
    ensure!(output.status.success(), "apt-get indextargets failed: {}", output.status);
    let found = sources_of(release, &String::from_utf8(output.stdout)?);
    ensure!(
        !found.is_empty(),
        "this machine's apt has no source of {release}; run apt-get update on such a Debian"
    );
    Ok(found)
}

fn sources_of(release: &str, targets: &str) -> Vec<AptSource> {
    let mut found = Vec::new();
    for line in targets.lines() {
        let [uri, suite, component] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let is_wanted =
            suite == release || suite.strip_prefix(release).is_some_and(|rest| rest.starts_with('-'));
        let source = AptSource { uri: uri.into(), suite: suite.into(), component: component.into() };
        if is_wanted && component == "main" && !found.contains(&source) {
            found.push(source);
        }
    }
    found.sort_by_key(|source| source.suite != release);
    found
}

/// A folder with the files of an image.
pub(super) struct Tree {
    folder: PathBuf,
}

impl Tree {
    /// Makes a folder like the slim image of a release.
    pub(super) fn debootstrap(folder: &Path, release: &str, sources: &[AptSource]) -> Result<()> {
        let mirror = &sources.first().context("no source")?.uri;
        eprintln!("making a minimal {release} in {}", folder.display());
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", release]).arg(folder).arg(mirror);
        downloading(&mut debootstrap)?;
        let lines = sources
            .iter()
            .map(|AptSource { uri, suite, component }| format!("deb {uri} {suite} {component}\n"));
        fs::write(folder.join("etc/apt/sources.list"), lines.collect::<String>())?;
        quietly(Command::new("sh").args(["-c", SLIM, "sh"]).arg(folder))
    }

    /// Copies a folder with its owners and links.
    pub(super) fn copy_of(original: &Path, folder: &Path) -> Result<Self> {
        remove_dir(folder)?;
        quietly(Command::new("cp").arg("--archive").args([original, folder]))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Where a path of the image is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        // A slash at the end means the contents of a folder.
        self.folder.join(path.trim_start_matches('/'))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a script in the tree with these variables alone.
    pub(super) fn run(&self, script: &str, environment: &Variables) -> Result<()> {
        eprintln!("{}: RUN {script}", self.folder.display());
        let variables = environment.iter().map(|(name, value)| format!("{name}={value}"));
        let mut arguments =
            vec![self.folder.display().to_string(), format!("PATH={PATH}"), "HOME=/root".into()];
        arguments.extend(variables);
        arguments.extend(["/bin/sh", "-c", script].map(str::to_owned));
        namespaces(&["--pid", "--fork"], IN_TREE, &arguments).with_context(|| format!("failed: RUN {script}"))
    }

    /// Copies a file, or the contents of a folder whose path ends with a slash, to a path of the image.
    pub(super) fn copy_from_outside(&self, source: &Path, target: &str) -> Result<()> {
        let to = self.path(target);
        let folder = if target.ends_with('/') { Some(&*to) } else { to.parent() };
        fs::create_dir_all(folder.context("a target is in a folder")?)?;
        let mut copy = Command::new("cp");
        copy.args(["--recursive", "--preserve=mode,timestamps,links", "--no-target-directory"]).arg(source);
        match source.file_name() {
            Some(name) if source.is_file() && target.ends_with('/') => copy.arg(to.join(name)),
            _ => copy.arg(to),
        };
        quietly(&mut copy)
    }

    /// The files as they are now.
    pub(super) fn files(&self) -> Result<Files> {
        let mut files = Files::default();
        files.add(&self.folder)?;
        Ok(files)
    }
}

/// Runs a script in namespaces of its own; what it mounts ends with it.
pub(super) fn namespaces(flags: &[&str], script: &str, arguments: &[String]) -> Result<()> {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--kill-child"]).args(flags).args(["sh", "-c", script, "sh"]).args(arguments);
    quietly(&mut unshare)
}

/// The regular files of a tree.
#[derive(Debug, Default)]
pub(super) struct Files {
    stamps: BTreeMap<PathBuf, Stamp>,
}

/// What tells that a file was written, and how large it is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds of the last change of the contents.
    modified: (i64, i64),
}

impl Files {
    fn add(&mut self, folder: &Path) -> Result<()> {
        for path in entries(folder)? {
            let meta =
                fs::symlink_metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if meta.is_dir() {
                self.add(&path)?;
            } else if meta.is_file() {
                let modified = (meta.mtime(), meta.mtime_nsec());
                self.stamps.insert(path, Stamp { inode: meta.ino(), bytes: meta.len(), modified });
            }
        }
        Ok(())
    }

    /// The size of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes_changed_since(&Self::default())
    }

    /// The size of the files that are new or were written since then: that of a layer. A file with several names counts once.
    pub(super) fn bytes_changed_since(&self, before: &Self) -> u64 {
        let changed = self.stamps.iter().filter(|(path, stamp)| before.stamps.get(*path) != Some(stamp));
        let files: BTreeSet<&Stamp> = changed.map(|(_, stamp)| stamp).collect();
        files.iter().map(|stamp| stamp.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn sources_are_those_of_the_release_and_its_updates() {
        let targets = "http://a/security/ bookworm-security main\nhttp://a/debian/ bookworm main\n\
                       http://a/debian/ bookworm main\nhttp://a/debian/ bookworm contrib\nhttp://b/ cloud-bookworm main\n";
        let found = sources_of("bookworm", targets);
        let suites: Vec<&str> = found.iter().map(|source| source.suite.as_str()).collect();
        assert_eq!(suites, ["bookworm", "bookworm-security"]);
        assert_eq!(sources_of("trixie", targets), []);
    }

    #[test]
    fn layer_is_the_size_of_new_and_written_files() {
        let folder = env::temp_dir().join(format!("lkr-xtask-tree-{}", process::id()));
        let tree = Tree { folder: folder.clone() };
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/old"), "12345").unwrap();
        fs::write(folder.join("a/written"), "123").unwrap();
        let before = tree.files().unwrap();
        assert_eq!(before.bytes(), 8);
        fs::write(folder.join("a/written"), "1234567").unwrap();
        fs::write(folder.join("a/b/new"), "12").unwrap();
        fs::hard_link(folder.join("a/b/new"), folder.join("a/b/same")).unwrap();
        tree.copy_from_outside(&folder.join("a/b/"), "c/d/").unwrap();
        tree.copy_from_outside(&folder.join("a/old"), "c/e").unwrap();
        let after = tree.files().unwrap();
        assert_eq!(after.bytes_changed_since(&before), 7 + 2 + 2 + 5);
        assert!(folder.join("c/d/same").is_file() && folder.join("c/e").is_file());
        fs::remove_dir_all(&folder).unwrap();
    }
}
