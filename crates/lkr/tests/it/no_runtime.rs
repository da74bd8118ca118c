//! Calls outside of a tokio runtime.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use lkr::{ErrorKind, KnowledgeBase, NewDocument, SearchRequest};
use tokio::runtime::Runtime;

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

/// Workers run where the knowledge base was opened.
#[test]
fn adding_after_the_runtime_of_the_opening_has_ended_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let opening = Runtime::new().unwrap();
    let kb = opening.block_on(KnowledgeBase::open(folder.path())).unwrap();
    drop(opening);
    let tides = || NewDocument { text: "The moon pulls the sea.".to_owned(), ..NewDocument::default() };
    Runtime::new().unwrap().block_on(async {
        let error = kb.add(tides()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("the runtime has ended"), "{error}");
        kb.close().await;
        let kb = KnowledgeBase::open(folder.path()).await.unwrap();
        kb.add(tides()).await.unwrap();
        let found = kb.search(&SearchRequest::new("moon")).await.unwrap();
        assert_eq!(found.response.results.len(), 1, "the document was accepted once");
    });
}
