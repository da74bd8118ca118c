use actix_web::http::{Method, StatusCode};

use crate::{
    error::Failing,
    http::{Admin, Answer, Cx, Endpoint, Reply},
    openapi::{Doc, Shape, schema},
    wire::{eval::GoldSetInput, tasks::Accepted},
};

/// The largest gold set.
const BODY_BYTES: usize = 4 * 1024 * 1024;

pub(super) fn rows() -> Vec<Endpoint> {
    let summary = "Accepts that searches be judged by queries of which it is known what answers them";
    let doc = Doc::new("Evaluation", "evaluate", summary, Shape::Envelope(schema::<Accepted>()));
    vec![Endpoint::new(
        Method::POST,
        "/api/v1/eval",
        doc.status(StatusCode::ACCEPTED).body::<GoldSetInput>(),
        evaluate,
    )]
}

async fn evaluate(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let input: GoldSetInput = cx.json(BODY_BYTES).await?;
    let gold = input.check()?;
    let task = cx.services()?.kb.evaluate(&gold, &caller.creator()).await.writing()?;
    Reply::accepted(&Accepted::from(&task))
}
