//! The files that the program needs, for a sandbox that denies all others.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
};

/// Files and folders that the program opens. Some do not exist on a given system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Libraries and data: files, and folders with everything in them.
    pub readable: Vec<PathBuf>,
    /// The program and its loader; for a script, its interpreter and the folders of other programs.
    pub executable: Vec<PathBuf>,
}

/// The folders of libraries and of tesseract's data, on the usual systems.
const FOLDERS: [&str; 10] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/share/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract",
    "/usr/share/tesseract-ocr",
    "/nix/store",
];

/// The folders of programs that a script may start.
const PROGRAM_FOLDERS: [&str; 4] = ["/bin", "/usr/bin", "/usr/local/bin", "/nix/store"];

/// Files that the loader and the libraries read.
const FILES: [&str; 4] =
    ["/etc/ld.so.cache", "/etc/ld.so.preload", "/proc/cpuinfo", "/sys/devices/system/cpu"];

/// The files that the program at `program` needs: those of the usual systems, and those beside it.
pub(crate) fn program_files(program: &Path) -> ProgramFiles {
    let program = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let beside =
        program.parent().and_then(Path::parent).into_iter().filter(|prefix| prefix.parent().is_some());
    let beside = beside.flat_map(|prefix| [prefix.join("lib"), prefix.join("share/tessdata")]);
    let readable = FOLDERS.iter().chain(&FILES).map(PathBuf::from).chain(beside).collect();
    let mut executable = vec![program.clone()];
    match interpreter(&program) {
        // A script starts other programs, which nothing tells in advance.
        Some(interpreter) => {
            executable.extend(loader(&interpreter).ok().flatten());
            executable.push(interpreter);
            executable.extend(PROGRAM_FOLDERS.map(PathBuf::from));
        }
        None => executable.extend(loader(&program).ok().flatten()),
    }
    ProgramFiles { readable, executable }
}

/// The interpreter that the first line of a script names; `None` for other files.
fn interpreter(program: &Path) -> Option<PathBuf> {
    const MAX_LINE_BYTES: u64 = 4096;
    let mut head = Vec::new();
    File::open(program).ok()?.take(MAX_LINE_BYTES).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let interpreter = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Some(PathBuf::from(interpreter))
}

/// The loader that an ELF file of 64 bits names; `None` for other files.
fn loader(program: &Path) -> io::Result<Option<PathBuf>> {
    /// The type of the entry that names the loader (`PT_INTERP`).
    const INTERPRETER: [u8; 4] = [3, 0, 0, 0];
    const MAX_PATH_BYTES: u64 = 4096;
    let mut file = File::open(program)?;
    let header = read::<64>(&mut file, 0)?;
    let [b'\x7f', b'E', b'L', b'F', 2, 1, ..] = header else { return Ok(None) };
    let (table, size, count) = (number(&header, 32, 8), number(&header, 54, 2), number(&header, 56, 2));
    for at in 0..count {
        let entry = read::<56>(&mut file, table.saturating_add(at * size))?;
        if entry.starts_with(&INTERPRETER) {
            file.seek(SeekFrom::Start(number(&entry, 8, 8)))?;
            let mut path = Vec::new();
            file.take(number(&entry, 32, 8).min(MAX_PATH_BYTES)).read_to_end(&mut path)?;
            path.retain(|byte| *byte != 0);
            return Ok(Some(std::ffi::OsString::from_vec(path).into()));
        }
    }
    Ok(None)
}

fn read<const LENGTH: usize>(file: &mut File, at: u64) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The little-endian number of `length` bytes at an offset.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let digits = bytes.iter().skip(at).take(length).rev();
    digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn loader_of_a_program_exists() {
        let files = program_files(&std::env::current_exe().unwrap());
        let [_, loader] = &files.executable[..] else { panic!("{files:?}") };
        assert!(loader.is_file(), "{loader:?}");
    }

    #[test]
    fn script_may_start_its_interpreter_and_other_programs() {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#! /bin/sh -e\nexec tesseract\n").unwrap();
        let files = program_files(script.path());
        assert!(files.executable.contains(&"/bin/sh".into()), "{files:?}");
        assert!(files.executable.contains(&"/usr/bin".into()), "{files:?}");
        let program = program_files(&std::env::current_exe().unwrap());
        assert!(!program.executable.contains(&"/usr/bin".into()), "{program:?}");
    }

    #[test]
    fn other_files_have_no_loader() {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n".repeat(20)).unwrap();
        assert_eq!(loader(script.path()).unwrap(), None);
        assert!(loader(Path::new("/no/such/program")).is_err());
    }
}
