//! Measures how far a model's cosines spread: `spread MODEL_DIR TEXT_FILE [LINES]`, a text a line.

use std::{
    io::{Write, stdout},
    path::Path,
};

use anyhow::{Context, Result};
use lkr_models::{EmbedKind, Embedder, cosine_scale, spread};
use lkr_models_local::{LocalEmbedder, LocalOptions};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("which model folder?")?;
    let file = arguments.next().context("which file with a text a line?")?;
    let lines = arguments.next().map_or(Ok(200), |lines| lines.parse::<usize>())?;
    let embedder = LocalEmbedder::open(Path::new(&folder), LocalOptions::default())?;
    let texts = std::fs::read_to_string(file)?;
    let texts: Vec<String> = texts.lines().map(str::to_owned).collect();
    let step = (texts.len() / lines).max(1);
    let sample: Vec<String> = texts.into_iter().step_by(step).take(lines).collect();
    let vectors = embedder.embed(EmbedKind::Passage, &sample).await?;
    match spread(&vectors) {
        Some(spread) => {
            let scale = cosine_scale(spread);
            let id = &embedder.profile().id;
            writeln!(stdout(), "model {id}, {} texts: spread {spread:.3}, scale {scale:.1}", sample.len())?;
        }
        None => writeln!(stdout(), "{} texts are too few", sample.len())?,
    }
    Ok(())
}
