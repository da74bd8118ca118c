//! moto's S3 server, a Python program, as a child process.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::{
    env,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{free_port, skip};

/// The variable with the folder of the Python packages.
const MOTO: &str = "LKR_MOTO";

/// Runs the server. It ends with the process that started it, even if that is killed: its standard input closes then. Of several
/// conditional puts of an object, S3 lets one succeed. In moto, each looks for the object first, and several may find none,
/// so they take turns.
const PROGRAM: &str = "
import os, sys, threading
from moto.s3.responses import S3Response
from moto.server import main
put, turn = S3Response._key_response_put, threading.Lock()
def put_in_turn(*arguments, **named):
    with turn:
        return put(*arguments, **named)
S3Response._key_response_put = put_in_turn
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
main(['-H', '127.0.0.1', '-p', sys.argv[1]])
";

/// The longest time for the server to answer after its start.
const START: Duration = Duration::from_secs(120);

/// The longest time for a response.
const RESPONSE: Duration = Duration::from_secs(30);

/// An S3 server on 127.0.0.1 that holds its objects in memory. It ends when this is dropped.
///
/// It accepts every access key and does not check signatures.
#[derive(Debug)]
pub struct S3Server {
    packages: PathBuf,
    port: u16,
    child: Child,
}

impl S3Server {
    /// Starts a server and waits until it answers; `None` if the variable `LKR_MOTO` does not name its packages, which is
    /// printed.
    ///
    /// # Panics
    /// If the server does not answer, or the variable is not set and the environment variable `CI` is.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(packages) = env::var_os(MOTO).filter(|packages| !packages.is_empty()) else {
            skip(&format!("{MOTO} does not name the packages of moto"));
            return None;
        };
        let packages = PathBuf::from(packages);
        // Another process may take the free port before the server does.
        for _ in 0..5 {
            let port = free_port();
            let mut server = Self { child: spawn(&packages, port), packages: packages.clone(), port };
            if server.is_ready() {
                return Some(server);
            }
        }
        panic!("moto ends at its start; python3 with {MOTO}={} as PYTHONPATH says why", packages.display());
    }

    /// The address that the server answers at, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port that the server answers at.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Creates a bucket.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn create_bucket(&self, name: &str) {
        let response = self.request("PUT", &format!("/{name}"), "");
        assert!(response.starts_with("HTTP/1.1 200"), "the bucket {name} was not created: {response}");
    }

    /// How many uploads in parts of a bucket are neither completed nor aborted.
    ///
    /// # Panics
    /// If the server refuses.
    #[must_use]
    pub fn open_uploads(&self, bucket: &str) -> usize {
        let response = self.request("GET", &format!("/{bucket}?uploads"), "");
        assert!(response.starts_with("HTTP/1.1 200"), "the uploads were not listed: {response}");
        response.matches("<UploadId>").count()
    }

    /// From now on every access key is refused as unknown.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn refuse_access_keys(&self) {
        let response = self.request("POST", "/moto-api/reset-auth", "0");
        assert!(response.starts_with("HTTP/1.1 200"), "access keys are not refused: {response}");
    }

    /// Ends the server as by kill -9. Its objects are lost.
    ///
    /// # Panics
    /// If the operating system refuses.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("moto cannot be killed");
    }

    /// Starts the server again at the same port, without buckets.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.packages, self.port);
        assert!(self.is_ready(), "moto did not start again");
    }

    /// Stops the server as by SIGSTOP: connections are made, and nothing is answered.
    ///
    /// # Panics
    /// If the operating system refuses.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets a paused server go on.
    ///
    /// # Panics
    /// If the operating system refuses.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([format!("-{name}"), id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} was not sent to moto");
    }

    /// Waits until the server answers; whether it does, rather than having ended.
    fn is_ready(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < START {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return false;
            }
            if self
                .exchange("GET", "/moto-api/", "")
                .is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
            {
                return true;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("moto did not answer within {START:?}");
    }

    fn request(&self, method: &str, target: &str, body: &str) -> String {
        self.exchange(method, target, body).expect("moto does not answer")
    }

    fn exchange(&self, method: &str, target: &str, body: &str) -> std::io::Result<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        connection.set_read_timeout(Some(RESPONSE))?;
        let (port, length) = (self.port, body.len());
        // moto accepts any signature, but not a request without one.
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20300101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n"
        );
        connection.write_all(head.as_bytes())?;
        connection.write_all(body.as_bytes())?;
        let mut response = String::new();
        connection.read_to_string(&mut response)?;
        Ok(response)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(packages: &PathBuf, port: u16) -> Child {
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM, &port.to_string()]).env("PYTHONPATH", packages);
    python.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    python.spawn().expect("python3 cannot be started")
}
