//! A TCP proxy that can hold back answers and cut connections.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// A proxy before a server. It stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    is_held: watch::Sender<bool>,
    connections: Arc<Mutex<JoinSet<()>>>,
    accepting: AbortHandle,
}

impl Proxy {
    /// `url` is the server's, such as `http://127.0.0.1:6334`.
    pub(crate) async fn start(url: &str) -> Self {
        let server = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_held = watch::Sender::new(false);
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let (held, tasks) = (is_held.clone(), Arc::clone(&connections));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tasks.lock().unwrap().spawn(connect(client, server.clone(), held.subscribe()));
            }
        });
        Self { address, is_held, connections, accepting: accepting.abort_handle() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers stay in the proxy; requests pass.
    pub(crate) fn hold_answers(&self) {
        self.is_held.send_replace(true);
    }

    /// Cuts all connections; held answers are lost.
    pub(crate) async fn cut(&self) {
        let mut connections = std::mem::take(&mut *self.connections.lock().unwrap());
        connections.shutdown().await;
        self.is_held.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, server: String, held: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _unchanged_or_failed = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let passing = watch::Sender::new(false).subscribe();
    tokio::select! {
        () = forward(from_client, to_server, passing) => {}
        () = forward(from_server, to_client, held) => {}
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if *held.borrow_and_update() && held.wait_for(|is_held| !is_held).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
