//! The server in the process of another program, which works on its own data folder with it.

use std::{
    ffi::OsString,
    net::SocketAddr,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use lkr_auth::OperatorToken;
use tokio::sync::oneshot;

use crate::{
    config::{ConfigSources, LoadedConfig, load},
    run::{StartOptions, run},
    runtimes::Runtimes,
};

/// How long the server has to notice that connections were closed. Chosen, not measured.
const CLOSED_CONNECTIONS_PAUSE: Duration = Duration::from_millis(20);

/// A server that listens on a free port of this machine and admits the program that started it alone.
#[derive(Debug)]
pub struct LocalServer {
    address: SocketAddr,
    token: OperatorToken,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl LocalServer {
    /// Starts a server with the configuration that `lkr-server` would have with these flags, and returns once it is ready.
    /// Every request needs a login.
    ///
    /// # Errors
    /// What prevents a start of the server.
    pub fn start(flags: Vec<OsString>) -> Result<Self> {
        // The parsers of files run as the same user, and this process has the keys.
        lkr::files::hide_process_memory();
        let own = ["lkr", "--listen", "127.0.0.1:0", "--require-login-for-reads", "true"];
        let arguments = own.into_iter().map(OsString::from).chain(flags).collect();
        let LoadedConfig { config, .. } = load(&ConfigSources::of_process(arguments))?;
        let token = OperatorToken::generate();
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let on_ready = Box::new(move |addresses: &[SocketAddr]| {
            // Without a receiver the program has ended.
            let _ = ready.send(addresses.first().copied());
        });
        let started = StartOptions {
            operator: Some(token.clone()),
            on_ready: Some(on_ready),
            ..StartOptions::default()
        };
        let thread = thread::Builder::new().name("lkr-local-server".to_owned()).spawn(move || {
            let runtimes = Runtimes::start()?;
            let served = runtimes.block_on(run(config, started, &runtimes.ingestion(), async move {
                // A dropped sender stops the server too.
                let _ = stopped.await;
            }));
            runtimes.shutdown();
            served
        })?;
        match is_ready.recv() {
            Ok(address) => {
                let address = address.context("the server listens on no address")?;
                Ok(Self { address, token, stop, thread })
            }
            Err(mpsc::RecvError) => Err(join(thread).err().unwrap_or_else(|| anyhow!("the server ended"))),
        }
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token that it admits.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.token()
    }

    /// Stops the server, and waits until it has ended: a fifth of a second longer if connections are open.
    ///
    /// # Errors
    /// Why the server failed.
    pub fn stop(self) -> Result<()> {
        // Without connections the server ends at once; otherwise it waits for the last bytes of responses.
        thread::sleep(CLOSED_CONNECTIONS_PAUSE);
        // Without a receiver the server has ended.
        let _ = self.stop.send(());
        join(self.thread)
    }
}

fn join(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread.join().map_err(|_| anyhow!("the server panicked"))?
}
