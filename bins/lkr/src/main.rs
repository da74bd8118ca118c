#![doc = include_str!("../README.md")]

mod server;

use std::{env, ffi::OsStr, path::Path, process::ExitCode};

/// The name under which the executable is the HTTP service.
const SERVER: &str = "lkr-server";

fn main() -> ExitCode {
    if env::args_os().next().is_some_and(|name| is_server(&name)) {
        return lkr_server::main(env::args_os().collect());
    }
    lkr_cli::main(&server::PROGRAM)
}

/// Whether the program was started as the server, from any folder, with or without the suffix of executables.
fn is_server(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.strip_suffix(".exe").unwrap_or(name) == SERVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_decides_whether_the_program_is_the_server() {
        for name in ["lkr-server", "/usr/local/bin/lkr-server", "./lkr-server.exe"] {
            assert!(is_server(OsStr::new(name)), "{name}");
        }
        for name in ["lkr", "/opt/lkr-server/lkr", "lkr-server-2", "lkr.exe", ""] {
            assert!(!is_server(OsStr::new(name)), "{name}");
        }
    }
}
