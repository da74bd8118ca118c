//! Lists in pages.

use lkr::{ErrorKind, ListFilter, ListOrder, NewDocument, Result, Scope, SpaceName, TaskLists};

use crate::common::TestStores;

#[tokio::test]
async fn page_of_no_items_is_refused() {
    fn check<T>(page: Result<T>) {
        let error = page.err().expect("a page of no items");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("limit is 0"), "{error}");
    }
    let kb = TestStores::default().open(None).await;
    let document = NewDocument { text: "Io has lava.".to_owned(), ..NewDocument::default() };
    let doc_id = kb.add(document).await.unwrap().doc_id;
    let (space, filter) = (SpaceName::default(), ListFilter::default());
    check(kb.chunks(doc_id, 0, 0).await);
    check(kb.chunks_in(&Scope::All, doc_id, 0, 0).await);
    check(kb.list(&Scope::All, &filter, None, 0).await);
    check(kb.list_space(&space, ListOrder::NewestFirst, None, 0).await);
    check(kb.tasks(&TaskLists::All, |_| true, None, 0).await);
    check(kb.tasks_with_status(&TaskLists::All, None, |_| true, None, 0).await);
    check(kb.unfinished_tasks(None, 0).await);
    assert_eq!(kb.chunks(doc_id, 0, 1).await.unwrap().unwrap().next, None);
}
