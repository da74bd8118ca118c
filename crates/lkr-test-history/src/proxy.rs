//! A TCP proxy in front of Redis that loses answers, repeats and delays requests, and cuts connections.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, Notify},
    time::{sleep, timeout},
};

use crate::reply;

/// How long a copy waits for its answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The request by which a client looks whether its connection works.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// A proxy on a free port of the loopback interface. It runs as long as the runtime that started it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    faults: Arc<Faults>,
}

/// Which faults requests meet.
#[derive(Debug, Default)]
struct Faults {
    lost_answers: AtomicUsize,
    copies: AtomicUsize,
    /// Copies that the server has answered.
    delivered: AtomicUsize,
    delay_ms: AtomicU64,
    is_closed: AtomicBool,
    /// Ends all connections.
    cut: Notify,
    remembered: Mutex<Remembered>,
}

/// The answers that a server with a mistake gives again.
#[derive(Debug, Default)]
struct Remembered {
    /// Requests with this in them are answered from here; none if it is empty.
    word: Vec<u8>,
    /// For so long.
    age: Duration,
    answers: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
}

impl Proxy {
    /// Starts a proxy for the server on this port of the loopback interface. Copies of requests arrive `delay` later.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(server: u16, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let faults = Arc::<Faults>::default();
        let shared = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !shared.is_closed.load(Ordering::SeqCst) {
                    tokio::spawn(serve(client, server, delay, Arc::clone(&shared)));
                }
            }
        });
        Ok(Self { port, faults })
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its address, as a URL of Redis.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends the connection of each of the next `count` scripts when the server has answered; the client gets no answer.
    pub fn lose_answers(&self, count: usize) {
        self.faults.lost_answers.store(count, Ordering::SeqCst);
    }

    /// Sends copies of the next `count` scripts.
    pub fn copy_requests(&self, count: usize) {
        self.faults.copies.store(count, Ordering::SeqCst);
    }

    /// Delays every request from now on by so many milliseconds.
    pub fn delay(&self, millis: u64) {
        self.faults.delay_ms.store(millis, Ordering::SeqCst);
    }

    /// Ends all connections; requests on their way get no answer.
    pub fn cut(&self) {
        self.faults.cut.notify_waiters();
    }

    /// Ends all connections, and every new one at once, until [`open`](Self::open).
    pub fn close(&self) {
        self.faults.is_closed.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Ends [`close`](Self::close).
    pub fn open(&self) {
        self.faults.is_closed.store(false, Ordering::SeqCst);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.lose_answers(0);
        self.copy_requests(0);
        self.delay(0);
        self.open();
    }

    /// Answers each script with `word` in it as it was answered before, for so long. A client behind the proxy is then one that
    /// does not read these records again.
    pub fn answer_from_memory(&self, word: &str, age: Duration) {
        let mut remembered = self.faults.remembered();
        *remembered = Remembered { word: word.into(), age, answers: HashMap::new() };
    }

    /// Waits until the server has answered so many copies.
    pub async fn wait_for_copies(&self, count: usize) {
        while self.faults.delivered.load(Ordering::SeqCst) < count {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Faults {
    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of a client. It sends a request when it has the answer to the one before, as the connections of a pool do; only
/// PING may come before that.
struct Connection {
    server: u16,
    delay: Duration,
    faults: Arc<Faults>,
    /// Whether the last request runs a script.
    is_script: AtomicBool,
    /// The last request, if its answer is to be remembered, and what came of that answer.
    asked: Mutex<Option<Asked>>,
}

/// A request, and what came of its answer.
type Asked = (Vec<u8>, Vec<u8>);

/// The way of answers to a client, on which remembered ones go too.
type ToClient = AsyncMutex<OwnedWriteHalf>;

async fn serve(client: TcpStream, server: u16, delay: Duration, faults: Arc<Faults>) {
    let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let cutting = Arc::clone(&faults);
    let cut = cutting.cut.notified();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    let to_client = AsyncMutex::new(to_client);
    let (is_script, asked) = (AtomicBool::new(false), Mutex::new(None));
    let connection = Connection { server, delay, faults, is_script, asked };
    // The end of one direction ends the other.
    tokio::select! {
        () = connection.pass_requests(from_client, to_server, &to_client) => {},
        () = connection.pass_answers(from_server, &to_client) => {},
        () = cut => {},
    }
}

impl Connection {
    async fn pass_requests(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answers: &ToClient) {
        let mut chunk = vec![0; 1 << 20];
        while let Ok(len @ 1..) = from.read(&mut chunk).await {
            let Some(request) = chunk.get(..len) else { return };
            if request == PING {
                if to.write_all(request).await.is_err() {
                    return;
                }
                continue;
            }
            let runs_script = request.windows(4).any(|bytes| bytes == b"EVAL");
            self.is_script.store(runs_script, Ordering::SeqCst);
            let passed = match self.recall(request) {
                Some(answer) => answers.lock().await.write_all(&answer).await,
                None => self.pass_request(request, &mut to).await,
            };
            if passed.is_err() {
                return;
            }
        }
    }

    async fn pass_request(&self, request: &[u8], to: &mut OwnedWriteHalf) -> io::Result<()> {
        if self.is_script.load(Ordering::SeqCst) && take(&self.faults.copies) {
            let faults = Arc::clone(&self.faults);
            tokio::spawn(deliver_late(request.to_vec(), self.server, self.delay, faults));
        }
        let delay = self.faults.delay_ms.load(Ordering::SeqCst);
        if delay > 0 {
            sleep(Duration::from_millis(delay)).await;
        }
        to.write_all(request).await
    }

    async fn pass_answers(&self, mut from: OwnedReadHalf, to: &ToClient) {
        let mut chunk = vec![0; 1 << 20];
        while let Ok(len @ 1..) = from.read(&mut chunk).await {
            let Some(answer) = chunk.get(..len) else { return };
            if self.is_script.load(Ordering::SeqCst) && take(&self.faults.lost_answers) {
                return;
            }
            self.remember(answer);
            if to.lock().await.write_all(answer).await.is_err() {
                return;
            }
        }
    }

    /// The remembered answer to a script. If it has none and is to have one, the answer that comes is remembered.
    fn recall(&self, request: &[u8]) -> Option<Vec<u8>> {
        let remembered = self.faults.remembered();
        let word = &remembered.word;
        let is_meant = self.is_script.load(Ordering::SeqCst)
            && !word.is_empty()
            && request.windows(word.len()).any(|bytes| bytes == word);
        let answer = remembered.answers.get(request).filter(|_| is_meant);
        let recalled =
            answer.filter(|(at, _)| at.elapsed() < remembered.age).map(|(_, answer)| answer.clone());
        *self.asked() = (is_meant && recalled.is_none()).then(|| (request.to_vec(), Vec::new()));
        recalled
    }

    /// Remembers an answer that is to be remembered, once all parts of it have come.
    fn remember(&self, part: &[u8]) {
        let mut asked = self.asked();
        let Some((_, answer)) = asked.as_mut() else { return };
        answer.extend_from_slice(part);
        if reply::length(answer) == Some(answer.len())
            && let Some((request, answer)) = asked.take()
        {
            self.faults.remembered().answers.insert(request, (Instant::now(), answer));
        }
    }

    fn asked(&self) -> MutexGuard<'_, Option<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
