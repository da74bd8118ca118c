//! A folder, a service, and what the tests do with both.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use lkr_sync::{ApplyOptions, FolderSync, Options, Plan, Report, Result};

use crate::service::Service;

#[derive(Debug)]
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) service: Service,
}

pub(crate) fn options() -> Options {
    Options {
        id: None,
        target: "http://host/ default".into(),
        machine: "here".into(),
        identity: None,
        extensions: vec!["txt".into(), "md".into()],
        max_bytes: 1_000_000,
        retry_refused: false,
    }
}

pub(crate) fn deleting() -> ApplyOptions {
    ApplyOptions { delete: true, ..ApplyOptions::default() }
}

impl Bench {
    /// A folder with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap(), service: Service::default() };
        fs::create_dir(bench.root()).unwrap();
        for (path, content) in files {
            bench.write(path, content);
        }
        bench
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("folder")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        write(&self.path(path), content);
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::create_dir_all(self.path(to).parent().unwrap()).unwrap();
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn open(&self) -> FolderSync {
        FolderSync::open(&self.root(), options()).unwrap()
    }

    pub(crate) fn plan(&self) -> Plan {
        self.open().plan(&self.service, &()).unwrap()
    }

    /// A run that may delete.
    pub(crate) fn run(&self) -> Report {
        self.try_run(options()).unwrap()
    }

    pub(crate) fn try_run(&self, options: Options) -> Result<Report> {
        run(&mut FolderSync::open(&self.root(), options)?, &self.service)
    }

    pub(crate) fn source(&self, path: &str) -> String {
        format!("{}{path}", self.open().source_prefix())
    }

    /// The paths of all documents of the folder.
    pub(crate) fn stored(&self) -> Vec<String> {
        let prefix = self.open().source_prefix();
        self.service.contents(&prefix).into_iter().map(|(path, _)| path).collect()
    }
}

pub(crate) fn run(sync: &mut FolderSync, service: &Service) -> Result<Report> {
    let plan = sync.plan(service, &())?;
    sync.apply(plan, service, deleting(), &())
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Sets the time of a file to an hour ago.
pub(crate) fn age(path: &Path) {
    let time = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
