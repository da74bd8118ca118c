//! Streams that end when their client loses the right to them.

use std::{io, pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use lkr::{Scope, Task};
use tokio::time::{Instant, sleep, sleep_until};

use super::{context::RequestContext, rights::Rights};

/// The longest time between two checks of the right. Chosen, not measured. See docs/studies.md#limits-by-client.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The pause before the right is checked again if the accounts cannot be read.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// How often the right is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recheck {
    /// Before each item, and while there is none every [`RECHECK_INTERVAL`]: for events.
    EachItem,
    /// Every [`RECHECK_INTERVAL`]: for the parts of a download.
    Interval,
}

/// What a stream shows; it ends when that is no longer readable.
#[derive(Debug)]
pub(crate) enum StreamSubject {
    /// Nothing in a space.
    Service,
    /// Contents of these spaces.
    Spaces(Scope),
    /// A task.
    Task(Box<Task>),
}

impl StreamSubject {
    pub(super) fn is_readable(&self, rights: &Rights) -> bool {
        match self {
            Self::Service | Self::Spaces(Scope::All) => true,
            Self::Spaces(Scope::Spaces(spaces)) => spaces.iter().all(|space| rights.may_read(space)),
            Self::Task(task) => rights.may_read_task(task),
        }
    }
}

/// The right of a stream's client, which is checked again as the stream goes on.
struct Permission {
    cx: RequestContext,
    subject: StreamSubject,
    checked: Instant,
}

/// The state of a stream.
struct Permitted<S, F> {
    items: Pin<Box<S>>,
    permission: Permission,
    recheck: Recheck,
    /// The last item of a stream that lost its right.
    revoked: Option<F>,
}

/// The end of a download whose client lost its right.
pub(crate) fn permission_lost<T>() -> Option<io::Result<T>> {
    Some(Err(io::Error::new(io::ErrorKind::PermissionDenied, "the permission ended during the response")))
}

/// Passes items on while a new request with the same credential would be admitted. Afterwards the stream ends with what
/// `revoked` returns: nothing for a stream of events, an error for a download, so that the client does not mistake it for
/// complete.
pub(crate) fn while_permitted<T: 'static>(
    cx: RequestContext,
    (subject, recheck): (StreamSubject, Recheck),
    items: impl Stream<Item = T> + 'static,
    revoked: impl FnOnce() -> Option<T> + 'static,
) -> impl Stream<Item = T> + 'static {
    let state = Permitted {
        items: Box::pin(items),
        permission: Permission::new(cx, subject),
        recheck,
        revoked: Some(revoked),
    };
    stream::unfold(state, |mut state| async move {
        state.revoked.as_ref()?;
        let item = state.next().await;
        item.map(|item| (item, state))
    })
}

/// Passes on what `render` makes of the items by what the caller may read at that moment; `None` sends nothing. The stream
/// ends when a new request with the same credential would not be admitted.
pub(crate) fn rendered_while_permitted<I: 'static, T: 'static>(
    cx: RequestContext,
    subject: StreamSubject,
    items: impl Stream<Item = I> + 'static,
    render: impl FnMut(I, &Rights) -> Option<T> + 'static,
) -> impl Stream<Item = T> + 'static {
    let state = (Box::pin(items), Permission::new(cx, subject), render);
    stream::unfold(state, |(mut items, mut permission, mut render)| async move {
        loop {
            let item = tokio::select! {
                item = items.next() => Some(item?),
                () = sleep_until(permission.due()) => None,
            };
            let rights = permission.check().await?;
            if let Some(rendered) = item.and_then(|item| render(item, &rights)) {
                return Some((rendered, (items, permission, render)));
            }
        }
    })
}

impl<T, S: Stream<Item = T>, F: FnOnce() -> Option<T>> Permitted<S, F> {
    async fn next(&mut self) -> Option<T> {
        loop {
            let due = self.permission.due();
            let item = tokio::select! {
                item = self.items.next() => Some(item?),
                () = sleep_until(due) => None,
            };
            let is_due = self.recheck == Recheck::EachItem || Instant::now() >= due;
            if is_due && self.permission.check().await.is_none() {
                return self.revoked.take().and_then(|revoked| revoked());
            }
            if item.is_some() {
                return item;
            }
        }
    }
}

impl Permission {
    fn new(cx: RequestContext, subject: StreamSubject) -> Self {
        Self { cx, subject, checked: Instant::now() }
    }

    /// When it is checked at the latest.
    fn due(&self) -> Instant {
        self.checked + RECHECK_INTERVAL
    }

    /// What the caller may do now; `None` if the request would not be admitted. While the accounts cannot be read nothing
    /// is sent; after [`RECHECK_INTERVAL`] that counts as a refusal.
    async fn check(&mut self) -> Option<Rights> {
        let until = Instant::now() + RECHECK_INTERVAL;
        loop {
            match self.cx.current_rights(&self.subject).await {
                Ok(rights) => {
                    self.checked = Instant::now();
                    return rights;
                }
                Err(_) if Instant::now() < until && !self.cx.state().is_stopping() => {
                    sleep(RETRY_INTERVAL).await;
                }
                Err(_) => return None,
            }
        }
    }
}
