use crate::{
    error::Failing,
    http::{Answer, Cx, Reader, Reply},
    wire::knowledge::KnowledgeStats,
};

pub(super) async fn stats(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let stats = cx.services()?.kb.stats().await.reading()?;
    Reply::ok(&KnowledgeStats::from(stats))
}
