//! Evaluation of searches by a gold set.

use serde_json::{Value, json};

use crate::support::{TEXT, api};

const EVAL: &str = "/api/v1/eval";

#[actix_web::test]
async fn evaluation_task_measures_flat_and_layered_searches() {
    let api = api().await;
    let admin = api.admin().await;
    let cats = api.add(&admin, json!({ "text": "Cats purr. Cats sleep all day.", "title": "Cats" })).await;
    let dogs = api
        .add(&admin, json!({ "text": "Dogs bark at the postman. One dog saw a cat.", "title": "Dogs" }))
        .await;
    let gold = json!({ "queries": [
        { "text": "who purrs", "relevant": [{ "doc_id": cats }] },
        { "text": "cats", "relevant": [{ "doc_id": dogs, "char_start": 0, "char_end": 10 }] },
        { "text": "zeppelin", "relevant": [{ "doc_id": cats }, { "doc_id": dogs, "char_start": 0, "char_end": 4 }] },
    ] });
    let accepted = api.post(EVAL, &admin, gold).await;
    assert_eq!((accepted.status.as_u16(), accepted.data()["status"].as_str()), (202, Some("pending")));
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    let task = api.ended(&admin, &task_id).await;
    assert_eq!((task["kind"].as_str(), task["status"].as_str()), (Some("evaluate"), Some("done")), "{task}");
    assert_eq!((&task["doc_id"], &task["progress"]), (&Value::Null, &json!({ "done": 3, "total": 3 })));
    // The first query finds its document at rank 1, the second at rank 2 behind the chunk about cats, the third not at all.
    for mode in ["flat", "layered"] {
        let figures = &task["result"][mode];
        assert_eq!(figures["queries"], 3, "{task}");
        let near = |key: &str, value: f64| (figures[key].as_f64().unwrap() - value).abs() < 1e-9;
        assert!(near("ndcg_at_10", (1.0 + 1.0 / 3.0_f64.log2()) / 3.0), "{task}");
        assert!(near("mrr_at_10", 0.5) && near("recall_at_10", 2.0 / 3.0), "{task}");
    }
    // The gold set is deleted when its task ends.
    assert!(api.kb.state().get_many(&[format!("gold/{task_id}")]).await.unwrap()[0].is_none());
}

#[actix_web::test]
async fn invalid_gold_set_is_refused_with_the_position_of_the_error() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let relevant = |more: Value| {
        let mut relevant = json!({ "doc_id": doc_id });
        relevant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "queries": [
            { "text": "moons", "relevant": [{ "doc_id": doc_id }] },
            { "text": "moons", "relevant": [{ "doc_id": doc_id }, relevant] },
        ] })
    };
    let query = |text: &str, relevant: Value| json!({ "queries": [{ "text": text, "relevant": relevant }] });
    for (body, expected) in [
        (json!({}), "queries"),
        (json!({ "queries": [] }), "queries has 0 items"),
        (json!({ "queries": [{}] }), "queries[0]"),
        (query(" ", json!([{ "doc_id": doc_id }])), "queries[0].text has 0"),
        (query(&"x".repeat(2_001), json!([{ "doc_id": doc_id }])), "queries[0].text has 2001"),
        (query("moons", json!([])), "queries[0].relevant has 0"),
        (query("moons", json!([{ "doc_id": "x" }])), "queries[0].relevant[0]"),
        (query("moons", json!([{ "doc_id": doc_id, "gain": 1 }])), "gain"),
        (relevant(json!({ "char_start": 5, "char_end": 5 })), "queries[1].relevant[1]: char_end 5"),
        (relevant(json!({ "char_start": 5 })), "queries[1].relevant[1]: char_start"),
        (relevant(json!({ "char_end": 5 })), "queries[1].relevant[1]: char_end"),
        (relevant(json!({ "char_start": -1, "char_end": 5 })), "queries[1].relevant[1]"),
        (json!({ "queries": [], "mode": "flat" }), "mode"),
    ] {
        let message = api.post(EVAL, &admin, body.clone()).await.expect_error(1001, 400);
        assert!(message.contains(expected), "{body}: {message}");
    }
    let user = api.user("eva").await;
    api.post(EVAL, &user, relevant(json!({}))).await.expect_error(1006, 403);
    api.post(EVAL, "", relevant(json!({}))).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn failed_evaluation_can_be_retried_and_cancelled_one_cannot() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let gold = json!({ "queries": [{ "text": "moons", "relevant": [{ "doc_id": doc_id }] }] });
    api.faults.set("vectors", "query_batch", false);
    let accepted = api.post(EVAL, &admin, gold.clone()).await.data();
    let task_id = accepted["task_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/documents/tasks/{task_id}");
    let task = api.ended(&admin, &task_id).await;
    assert_eq!(
        (task["status"].as_str(), task["error"]["code"].as_u64()),
        (Some("failed"), Some(2000)),
        "{task}"
    );
    assert_eq!((&task["error"]["stage"], &task["doc_id"]), (&json!("evaluate"), &Value::Null));
    api.faults.clear();
    assert_eq!(api.post(&format!("{path}/retry"), &admin, json!({})).await.status.as_u16(), 202);
    let task = api.ended(&admin, &task_id).await;
    assert_eq!(
        (&task["status"], &task["result"]["layered"]["ndcg_at_10"]),
        (&json!("done"), &json!(1.0)),
        "{task}"
    );

    // An unavailable store keeps the task waiting, so that it can be cancelled.
    api.faults.set("vectors", "query_batch", true);
    let accepted = api.post(EVAL, &admin, gold).await.data();
    let task_id = accepted["task_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/documents/tasks/{task_id}");
    assert_eq!(api.post(&format!("{path}/cancel"), &admin, json!({})).await.status.as_u16(), 202);
    api.faults.clear();
    let task = api.ended(&admin, &task_id).await;
    assert_eq!(
        (task["error"]["code"].as_u64(), &task["error"]["message"]),
        (Some(1003), &json!("cancelled"))
    );
    api.post(&format!("{path}/retry"), &admin, json!({})).await.expect_error(1003, 409);
    assert!(api.kb.state().get_many(&[format!("gold/{task_id}")]).await.unwrap()[0].is_none());
}

/// Every query is within its limits, but a gold set is stored as one record, which has at most 1 MiB.
#[actix_web::test]
async fn gold_set_that_cannot_be_stored_is_refused_as_too_large() {
    let api = api().await;
    let admin = api.admin().await;
    let query = json!({ "text": "x".repeat(2_000), "relevant": [{ "doc_id": "0".repeat(32) }] });
    let gold = |count: usize| json!({ "queries": vec![query.clone(); count] });
    assert_eq!(api.post(EVAL, &admin, gold(400)).await.status, 202);
    let refused = api.post(EVAL, &admin, gold(600)).await;
    let message = refused.expect_error(1001, 413);
    assert!(message.contains("at most 1048576"), "{message}");
}
