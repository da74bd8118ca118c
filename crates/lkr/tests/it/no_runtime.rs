//! Calls outside of a tokio runtime.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use lkr::{ErrorKind, KnowledgeBase};

/// The result of a future that does not wait.
fn result_of<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the future waits"),
    }
}

#[test]
fn opening_outside_of_a_runtime_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let errors = [
        result_of(KnowledgeBase::builder().build()).unwrap_err(),
        result_of(KnowledgeBase::open(folder.path())).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("no reactor running"), "{error}");
    }
}
