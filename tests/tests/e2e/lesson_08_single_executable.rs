//! Lesson 8: a single executable in an empty folder serves requests.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use lkr_tests::{Server, server_binary};

#[test]
fn lesson_08_one_process_without_arguments_or_files_serves() {
    // Only the address is configured, because another program may use the default port.
    let server = Server::start_without_config();
    assert_eq!(server.get("/knowledge/stats").data()["documents_total"], 0);
    assert_eq!(server.try_call("GET", "/healthz", None, None).unwrap().status, 200);
    let data = server.folder().join("lkr-data");
    let password = data.join("initial-admin-password");
    assert_eq!(fs::metadata(&password).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        server.log().contains("initial-admin-password"),
        "the log names the password file:\n{}",
        server.log()
    );

    let process = Path::new("/proc").join(server.pid().to_string());
    let Ok(threads) = fs::read_dir(process.join("task")) else {
        return lkr_test_support::skip("no /proc to list processes");
    };
    for thread in threads.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            // The parser workers run the same executable.
            let program = match fs::read_link(Path::new("/proc").join(child).join("exe")) {
                // It has ended.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                program => program,
            };
            assert_eq!(
                program.unwrap(),
                server_binary().canonicalize().unwrap(),
                "another program was started"
            );
        }
    }
    assert_eq!(listening(&process), [server.port()], "it listens on the configured port only");
}

#[test]
fn lesson_08_executable_needs_only_system_libraries() {
    let ldd = std::process::Command::new("ldd").arg(server_binary()).output();
    let Ok(ldd) = ldd else {
        return lkr_test_support::skip("no ldd");
    };
    let needed = String::from_utf8_lossy(&ldd.stdout);
    let system = [
        "linux-vdso",
        "libc.so",
        "libm.so",
        "libgcc_s.so",
        "libstdc++.so",
        "ld-linux",
        "libdl",
        "libpthread",
        "librt",
    ];
    for line in needed.lines().map(str::trim).filter(|line| line.contains(".so")) {
        assert!(system.iter().any(|name| line.contains(name)), "{line}");
    }
}

/// The TCP ports that a process listens on.
fn listening(process: &Path) -> Vec<u16> {
    let links = fs::read_dir(process.join("fd")).unwrap().flatten();
    let targets = links.filter_map(|entry| fs::read_link(entry.path()).ok());
    let inodes: Vec<String> = targets
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = Vec::new();
    for table in ["net/tcp", "net/tcp6"] {
        let table = fs::read_to_string(process.join(table)).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // The local address, the state (0A is LISTEN) and the inode.
            if fields[3] == "0A" && inodes.iter().any(|inode| inode == fields[9]) {
                let (_, port) = fields[1].rsplit_once(':').unwrap();
                ports.push(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}
