//! `cargo xtask deploy image [EXECUTABLE] [--build-arg NAME=VALUE]…`: replays the Dockerfile where no container engine runs, tells
//! how large the image is, and runs it.
//!
//! Each stage begins with a minimal Debian of its release, made by debootstrap. `RUN` runs as it is written, in a chroot, and
//! `COPY` copies. Two things differ from a build: Debian's own packages take the place of the image of Python, and the stage
//! that compiles is not replayed, because an executable is given.

mod tree;
mod trial;

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    tree::{Tree, apt_sources},
    trial::Trial,
};
use super::{
    SCRATCH,
    dockerfile::{Stage, Variables, assignments, stages},
    read, sample,
};
use crate::{executable, remove_dir, root, tools};

/// What replaying needs beside what each Debian has: programs and their packages.
const PROGRAMS: [(&str, &str); 2] = [("debootstrap", "debootstrap"), ("ip", "iproute2")];

/// The repository of images of the stage that compiles.
const COMPILER: &str = "rust";

/// What takes the place of other images on Debian.
const STAND_INS: [(&str, &[&str]); 2] = [("debian", &[]), ("python", &["python3-pip"])];

/// The variables of proxies, which a builder hands on as well.
const PROXIES: [&str; 6] = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// The variable with the file of certificates that pip trusts.
const PIP_CERTIFICATES: &str = "PIP_CERT";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// `None` builds one with the profile `dist`.
    executable: Option<PathBuf>,
    build_arguments: Variables,
}

/// What a stage has become.
enum Replayed {
    /// The stage that compiles: its only output is this executable.
    Executable(PathBuf),
    Tree(Tree),
}

/// The size of what one instruction adds, in bytes.
struct Layer {
    instruction: String,
    bytes: u64,
}

pub(super) fn replay(arguments: &[OsString]) -> Result<()> {
    let options = Options::parse(arguments)?;
    if tools::or_skip("the Dockerfile in folders of debootstrap", requirements())?.is_none() {
        return Ok(());
    }
    let executable = match options.executable {
        Some(executable) => std::path::absolute(executable)?,
        None => executable::build_profile("dist")?.join("lkr"),
    };
    ensure!(executable.is_file(), "there is no file {}", executable.display());
    let mut stages = stages(&read(&sample("Dockerfile")?)?)?;
    let image = stages.pop().context("no stage")?;
    let folder = root()?.join(SCRATCH).join("image");
    remove_dir(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let base = Base { minimal: folder.join("minimal"), folder };
    let mut earlier = Vec::new();
    for stage in stages {
        let name = stage.name.clone().context("a stage before the last one has a name")?;
        let replayed = if repository(&stage) == COMPILER {
            eprintln!("{name}: not replayed; its executable is {}", executable.display());
            Replayed::Executable(executable.clone())
        } else {
            let mut environment = inherited(|name| PROXIES.contains(&name) || name.starts_with("PIP_"));
            let tree = base.begin(&name, &stage, &mut environment)?;
            run_stage(&tree, &stage, &environment, &options.build_arguments, &[])?;
            Replayed::Tree(tree)
        };
        earlier.push((name, replayed));
    }
    let mut environment = inherited(|name| PROXIES.contains(&name));
    let tree = base.begin("image", &image, &mut environment)?;
    let base_bytes = tree.files()?.bytes();
    let layers = run_stage(&tree, &image, &environment, &options.build_arguments, &earlier)?;
    report(&image.base, base_bytes, &layers);
    Trial::of(&image)?.run(&tree, &base.folder)
}

/// What replaying needs. Mounts are made in namespaces of their own, which end with what runs in them.
fn requirements() -> Result<()> {
    ensure!(Path::new("/etc/debian_version").exists(), "it needs Debian");
    ensure!(tools::is_root()?, "it needs root");
    for (program, package) in PROGRAMS {
        tools::installed(program, &[package])?;
    }
    tree::namespaces(&["--net", "--pid", "--fork"], "true", &[])
}

impl Options {
    fn parse(arguments: &[OsString]) -> Result<Self> {
        let mut options = Self { executable: None, build_arguments: Variables::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--build-arg" {
                let text = arguments.next().and_then(|text| text.to_str()).unwrap_or_default();
                let (name, value) = text.split_once('=').context("--build-arg takes NAME=VALUE")?;
                options.build_arguments.insert(name.to_owned(), value.to_owned());
            } else if options.executable.is_none() && !argument.to_string_lossy().starts_with('-') {
                options.executable = Some(argument.into());
            } else {
                bail!("usage: cargo xtask deploy image [EXECUTABLE] [--build-arg NAME=VALUE]…");
            }
        }
        Ok(options)
    }
}

/// What the stages begin with: copies of one minimal Debian.
struct Base {
    folder: PathBuf,
    minimal: PathBuf,
}

impl Base {
    /// The tree that a stage begins with.
    fn begin(&self, name: &str, stage: &Stage, environment: &mut Variables) -> Result<Tree> {
        let release = release(&stage.base)?;
        let packages = STAND_INS.iter().find(|(image, _)| *image == repository(stage));
        let (_, packages) = packages.with_context(|| format!("nothing stands in for {}", stage.base))?;
        let minimal = self.minimal.with_extension(release);
        if !minimal.exists() {
            Tree::debootstrap(&minimal, release, &apt_sources(release)?)?;
        }
        let tree = Tree::copy_of(&minimal, &self.folder.join(name))?;
        if !packages.is_empty() {
            let install = format!(
                "apt-get update; apt-get install --yes --no-install-recommends {}",
                packages.join(" ")
            );
            tree.run(&install, environment)?;
        }
        if let Some(certificates) = environment.get(PIP_CERTIFICATES) {
            tree.copy_from_outside(Path::new(certificates), certificates)?;
        }
        Ok(tree)
    }
}

/// The repository of the image that a stage begins with, such as `debian`.
fn repository(stage: &Stage) -> &str {
    stage.base.split(':').next().unwrap_or_default()
}

/// The release of Debian that an image has, by the end of its tag.
fn release(image: &str) -> Result<&str> {
    let tag = image.split_once(':').with_context(|| format!("{image} has no tag"))?.1;
    tag.split('-').rfind(|part| *part != "slim").context("the tag is empty")
}

/// The variables of this process whose names are wanted.
fn inherited(wanted: impl Fn(&str) -> bool) -> Variables {
    env::vars().filter(|(name, _)| wanted(name)).collect()
}

/// Runs the instructions of a stage that change its files, and tells what each adds.
fn run_stage(
    tree: &Tree,
    stage: &Stage,
    environment: &Variables,
    build_arguments: &Variables,
    earlier: &[(String, Replayed)],
) -> Result<Vec<Layer>> {
    let (mut environment, mut layers) = (environment.clone(), Vec::new());
    let mut files = tree.files()?;
    for instruction in &stage.instructions {
        let text = &instruction.text;
        match instruction.keyword.as_str() {
            "ARG" => {
                let name = text.split('=').next().unwrap_or_default();
                environment.extend(assignments(text)?);
                environment.extend(build_arguments.get(name).map(|value| (name.to_owned(), value.clone())));
                continue;
            }
            "ENV" => {
                environment.extend(assignments(text)?);
                continue;
            }
            "RUN" => {
                ensure!(!text.starts_with(['-', '[', '<']), "RUN {text} is no plain command");
                tree.run(text, &environment)?;
            }
            "COPY" => copy(tree, text, earlier)?,
            // The trial uses these.
            "CMD" | "ENTRYPOINT" | "EXPOSE" | "HEALTHCHECK" | "LABEL" | "USER" | "VOLUME" | "WORKDIR" => {
                continue;
            }
            other => bail!("{other} cannot be replayed"),
        }
        let after = tree.files()?;
        let instruction = format!("{} {text}", instruction.keyword);
        layers.push(Layer { instruction, bytes: after.bytes_changed_since(&files) });
        files = after;
    }
    Ok(layers)
}

/// Copies what `COPY` names, from an earlier stage or from the repository.
fn copy(tree: &Tree, text: &str, earlier: &[(String, Replayed)]) -> Result<()> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (from, words) = match words.split_first() {
        Some((flag, rest)) if flag.starts_with("--") => {
            (Some(flag.strip_prefix("--from=").with_context(|| format!("{flag} is not understood"))?), rest)
        }
        _ => (None, &words[..]),
    };
    let (target, sources) = words.split_last().context("COPY has no target")?;
    ensure!(sources.len() == 1 || target.ends_with('/'), "several files are copied to {target}");
    for source in sources {
        let outside = match from {
            None => in_context(source)?,
            Some(stage) => {
                let (_, stage) = earlier.iter().find(|(name, _)| name == stage).context("no such stage")?;
                match stage {
                    Replayed::Tree(tree) => tree.path(source),
                    Replayed::Executable(file) => file.clone(),
                }
            }
        };
        tree.copy_from_outside(&outside, target)?;
    }
    Ok(())
}

/// A file of the repository, which must be sent to the builder.
fn in_context(source: &str) -> Result<PathBuf> {
    let root = root()?;
    let sent = read(&root.join(".dockerignore"))?.lines().any(|line| line == format!("!{source}"));
    ensure!(sent, ".dockerignore does not send {source}");
    Ok(root.join(source))
}

fn report(base: &str, base_bytes: u64, layers: &[Layer]) {
    let megabytes = |bytes: u64| format!("{:7.1} MB", bytes as f64 / 1e6);
    eprintln!("{}  {base}, by debootstrap", megabytes(base_bytes));
    for Layer { instruction, bytes } in layers {
        let start: String = instruction.chars().take(60).collect();
        eprintln!("{}  {start}", megabytes(*bytes));
    }
    eprintln!("{}  together", megabytes(base_bytes + layers.iter().map(|layer| layer.bytes).sum::<u64>()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_an_executable_and_build_arguments() {
        let parse =
            |arguments: &[&str]| Options::parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        let options = parse(&["target/debug/lkr", "--build-arg", "OCR_LANGUAGES=eng deu"]).unwrap();
        assert_eq!(options.executable, Some("target/debug/lkr".into()));
        assert_eq!(options.build_arguments, [("OCR_LANGUAGES".into(), "eng deu".into())].into());
        for wrong in [&["--build-arg"][..], &["--build-arg", "NAME"], &["a", "b"], &["--fast"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn stages_of_the_dockerfile_can_be_replayed() {
        let stages = stages(&read(&sample("Dockerfile").unwrap()).unwrap()).unwrap();
        for stage in stages.iter().filter(|stage| repository(stage) != COMPILER) {
            assert_eq!(release(&stage.base).unwrap(), "bookworm");
            assert!(STAND_INS.iter().any(|(image, _)| *image == repository(stage)), "{}", stage.base);
        }
        assert!(Trial::of(stages.last().unwrap()).is_ok());
        assert!(in_context("LICENSE-MIT").is_ok() && in_context("CHANGELOG.md").is_err());
    }
}
