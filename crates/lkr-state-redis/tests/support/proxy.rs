//! A TCP proxy that loses answers, repeats and delays requests, and cuts connections.
#![allow(dead_code, reason = "each test uses some")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::{sleep, timeout},
};

/// How long a copy waits for its answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How many requests of scripts meet which fault.
#[derive(Default)]
pub(crate) struct Faults {
    /// The connection ends when the server has answered, and the client does not get the answer.
    pub(crate) lost_answers: AtomicUsize,
    /// A copy of the request reaches the server `delay` later.
    pub(crate) copies: AtomicUsize,
    /// Copies that the server has answered.
    pub(crate) delivered: AtomicUsize,
    /// How many milliseconds every request waits.
    pub(crate) delay_ms: AtomicU64,
    /// Ends all connections.
    cut: Notify,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    pub(crate) faults: Arc<Faults>,
}

impl Proxy {
    /// A proxy for the server on this port.
    pub(crate) async fn start(server: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let faults = Arc::<Faults>::default();
        let shared = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server, delay, Arc::clone(&shared)));
            }
        });
        Self { port, faults }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn lose_answers(&self, count: usize) {
        self.faults.lost_answers.store(count, Ordering::SeqCst);
    }

    pub(crate) fn copy_requests(&self, count: usize) {
        self.faults.copies.store(count, Ordering::SeqCst);
    }

    /// Delays every request from now on by so many milliseconds.
    pub(crate) fn delay(&self, millis: u64) {
        self.faults.delay_ms.store(millis, Ordering::SeqCst);
    }

    /// Ends all connections; requests on their way get no answer.
    pub(crate) fn cut(&self) {
        self.faults.cut.notify_waiters();
    }

    /// Waits until the server has answered so many copies.
    pub(crate) async fn wait_for_copies(&self, count: usize) {
        while self.faults.delivered.load(Ordering::SeqCst) < count {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn serve(client: TcpStream, server: u16, delay: Duration, faults: Arc<Faults>) {
    let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let cutting = Arc::clone(&faults);
    let cut = cutting.cut.notified();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = upstream.into_split();
    // Whether the last request runs a script.
    let is_script = Arc::new(AtomicBool::new(false));
    let (seen, shared) = (Arc::clone(&is_script), Arc::clone(&faults));
    let requests = async move {
        let mut chunk = vec![0; 1 << 20];
        while let Ok(len @ 1..) = from_client.read(&mut chunk).await {
            let request = &chunk[..len];
            let runs_script = request.windows(4).any(|bytes| bytes == b"EVAL");
            seen.store(runs_script, Ordering::SeqCst);
            if runs_script && take(&shared.copies) {
                tokio::spawn(deliver_late(request.to_vec(), server, delay, Arc::clone(&shared)));
            }
            let delay = shared.delay_ms.load(Ordering::SeqCst);
            if delay > 0 {
                sleep(Duration::from_millis(delay)).await;
            }
            if to_server.write_all(request).await.is_err() {
                return;
            }
        }
    };
    let answers = async move {
        let mut chunk = vec![0; 1 << 20];
        while let Ok(len @ 1..) = from_server.read(&mut chunk).await {
            if is_script.load(Ordering::SeqCst) && take(&faults.lost_answers) {
                return;
            }
            if to_client.write_all(&chunk[..len]).await.is_err() {
                return;
            }
        }
    };
    // The end of one direction ends the other.
    tokio::select! { () = requests => {}, () = answers => {}, () = cut => {} }
}

async fn deliver_late(request: Vec<u8>, server: u16, delay: Duration, faults: Arc<Faults>) {
    sleep(delay).await;
    // The server may have been killed meanwhile.
    let Ok(mut upstream) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    if upstream.write_all(&request).await.is_ok()
        && matches!(timeout(ANSWER, upstream.read(&mut [0; 4096])).await, Ok(Ok(1..)))
    {
        faults.delivered.fetch_add(1, Ordering::SeqCst);
    }
}

/// Takes one of the faults that are left.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}
