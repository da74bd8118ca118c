//! What a parser tries that a file has taken over.

use std::{fs, io, net, os::unix::net::UnixStream, process::Command};

/// Tries everything that must fail. `text` has the id of the process that is attacked, and the path of a secret file. Each
/// result is a line: the attempt, and the error or `succeeded`.
pub(crate) fn attempt_all(text: &str) -> Vec<String> {
    let mut words = text.split_whitespace().skip(1);
    let (victim, secret) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let id: i32 = victim.parse().unwrap_or_default();
    let spool_file = format!("{secret}.new");
    [
        ("read /etc/passwd", fs::read("/etc/passwd").map(drop)),
        ("read a secret of the server", fs::read(secret).map(drop)),
        ("write a secret of the server", fs::write(secret, "x")),
        ("read the memory of the server", fs::File::open(format!("/proc/{victim}/mem")).map(drop)),
        ("read the environment of the server", fs::read(format!("/proc/{victim}/environ")).map(drop)),
        ("list the files of the server", fs::read_dir(format!("/proc/{victim}/fd")).map(drop)),
        ("list the root folder", fs::read_dir("/").map(drop)),
        ("create a file", fs::File::create(&spool_file).map(drop)),
        ("create a folder", fs::create_dir(&spool_file)),
        ("create a link", std::os::unix::fs::symlink("/", &spool_file)),
        ("remove a file", fs::remove_file(secret)),
        ("rename a file", fs::rename(secret, &spool_file)),
        ("start a program", Command::new("/bin/true").status().map(drop)),
        ("fork", system(&[libc::SYS_clone, libc::c_long::from(libc::SIGCHLD), 0, 0, 0, 0])),
        ("signal the server", system(&[libc::SYS_kill, id.into(), 0])),
        ("signal every process", system(&[libc::SYS_kill, -1, 0])),
        ("signal a thread of the server", system(&[libc::SYS_tgkill, id.into(), id.into(), 0])),
        ("join the server's process group", system(&[libc::SYS_setpgid, 0, id.into()])),
        ("have a signal sent to the server", system(&[libc::SYS_fcntl, 0, 8, id.into()])),
        ("attach to the server", system(&[libc::SYS_ptrace, 16, id.into(), 0, 0])),
        ("open the server as a descriptor", system(&[libc::SYS_pidfd_open, id.into(), 0])),
        (
            "read the server's memory directly",
            system(&[libc::SYS_process_vm_readv, id.into(), 0, 0, 0, 0, 0]),
        ),
        ("limit the server", system(&[libc::SYS_prlimit64, id.into(), 0, 0, 0])),
        ("open a user namespace", system(&[libc::SYS_unshare, libc::CLONE_NEWUSER.into()])),
        ("listen on a socket", net::TcpListener::bind("127.0.0.1:0").map(drop)),
        ("connect to a socket", net::TcpStream::connect("127.0.0.1:1").map(drop)),
        ("connect to a local socket", UnixStream::connect(secret).map(drop)),
    ]
    .into_iter()
    .map(|(attempt, result)| match result {
        Ok(()) => format!("{attempt}: succeeded"),
        Err(error) => format!("{attempt}: {:?}", error.kind()),
    })
    .collect()
}

/// How many descriptors are open.
pub(crate) fn open_descriptors() -> usize {
    (0..64).filter(|fd| system(&[libc::SYS_fcntl, *fd, libc::F_GETFD.into()]).is_ok()).count()
}

/// Makes a system call with a number and up to six arguments.
fn system(call: &[libc::c_long]) -> io::Result<()> {
    let argument = |at| call.get(at).copied().unwrap_or_default();
    #[expect(unsafe_code, reason = "the attempts bypass every library")]
    // SAFETY: the calls that are tried take no pointers, or null pointers.
    let result = unsafe {
        libc::syscall(
            argument(0),
            argument(1),
            argument(2),
            argument(3),
            argument(4),
            argument(5),
            argument(6),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
