//! Opens a folder, adds a text and searches it: `cargo run -p lkr --example ten_lines`.

use lkr::{KnowledgeBase, NewDocument, SearchRequest};

#[expect(clippy::print_stdout, reason = "the example prints its results")]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let kb = KnowledgeBase::open("./kb").await?;
    let text = "# Tides\n\nThe moon pulls the sea twice a day.".to_owned();
    kb.add(NewDocument { text, ..NewDocument::default() }).await?;
    let found = kb.search(&SearchRequest::new("what moves the sea?")).await?;
    for result in &found.response.results {
        println!("{:.3} {}: {}", result.score, result.title, result.text);
    }
    kb.close().await;
    Ok(())
}
