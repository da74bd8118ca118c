//! A transport of rmcp over lines.

use std::{io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage},
    transport::Transport,
};
use serde::Serialize;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{
        Mutex,
        mpsc::{self, Sender},
    },
};

use super::{
    lines::next_line,
    message::{MAX_MESSAGE_BYTES, Received, Receiver},
};

/// The most messages that are read ahead.
const READ_AHEAD: usize = 8;

/// Reads messages from the input in a task of its own, because rmcp drops a read that is under way whenever it has
/// something to send.
#[derive(Debug)]
pub(super) struct LineTransport<W> {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Output<W>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineTransport<W> {
    /// A transport for a server that speaks these revisions.
    pub(super) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: W,
        versions: Vec<ProtocolVersion>,
    ) -> Self {
        let output = Output(Arc::new(Mutex::new(output)));
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        let answers = output.clone();
        tokio::spawn(async move {
            if let Err(error) = receive_all(input, &answers, Receiver::new(versions), &sender).await {
                tracing::error!(%error, "cannot talk to the client; the session ends");
            }
        });
        Self { messages, output }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move { output.write(&message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages.close();
        self.output.0.lock().await.flush().await
    }
}

/// Passes on the messages of the input until it ends or nobody takes them, and answers what is no message.
async fn receive_all<W: AsyncWrite + Unpin>(
    input: impl AsyncRead + Unpin,
    output: &Output<W>,
    mut receiver: Receiver,
    messages: &Sender<ClientJsonRpcMessage>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    while let Some(line) = next_line(&mut input, MAX_MESSAGE_BYTES).await? {
        match receiver.receive(line) {
            Received::Message(message) => {
                if messages.send(*message).await.is_err() {
                    break;
                }
            }
            Received::Refused(answer) => output.write(&answer).await?,
            Received::Ignored => {}
        }
    }
    Ok(())
}

/// The output. Each message is written as a whole line.
#[derive(Debug)]
struct Output<W>(Arc<Mutex<W>>);

impl<W> Clone for Output<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut output = self.0.lock().await;
        output.write_all(&line).await?;
        output.flush().await
    }
}
