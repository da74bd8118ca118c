//! Which chunks a context takes first: those that the search found, and those beside them in the same section.

use std::collections::HashMap;

use lkr_domain::Chunk;

use crate::context::material::{ChunkKey, FoundChunk, REACH};

/// The priority of the next chunk of the same section, as a share of that of the chunk that was found.
const SAME_SECTION: f64 = 0.9;
/// The same in a text without headings.
const SAME_TEXT: f64 = 0.3;
/// The same for the first chunk of the section before or after.
const NEXT_SECTION: f64 = 0.3;
/// The same for the chunks of the sections below the chunk's own.
const SECTION_BELOW: f64 = 0.3;
/// By how much the priority falls with each further chunk.
const DECAY: f64 = 0.7;

/// A chunk and why it is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wanted {
    pub(super) key: ChunkKey,
    /// The rank, from 0, of the chunk for whose sake it is taken: its own, or that of a neighbour.
    pub(super) rank: usize,
    priority: f64,
}

/// The chunks in the order in which a context takes them.
///
/// The chunk with rank r has the priority 1/(1 + r). The constants were found on the shared collections; see
/// docs/studies.md#context.
pub(super) fn wanted(candidates: &[FoundChunk], chunks: &HashMap<ChunkKey, Chunk>) -> Vec<Wanted> {
    let mut best: HashMap<ChunkKey, Wanted> = HashMap::new();
    let mut want = |wanted: Wanted| {
        let held = best.entry(wanted.key).or_insert(wanted);
        if wanted.priority > held.priority {
            *held = wanted;
        }
    };
    for (rank, found) in candidates.iter().enumerate() {
        let own = 1.0 / (1 + rank) as f64;
        want(Wanted { key: found.key, rank, priority: own });
        let Some(chunk) = chunks.get(&found.key) else { continue };
        for (ordinal, share) in before(chunk, found.key, chunks).chain(after(chunk, found.key, chunks)) {
            want(Wanted { key: (found.key.0, ordinal), rank, priority: own * share });
        }
    }
    let mut wanted: Vec<Wanted> = best.into_values().collect();
    wanted
        .sort_by(|a, b| b.priority.total_cmp(&a.priority).then(a.rank.cmp(&b.rank)).then(a.key.cmp(&b.key)));
    wanted
}

/// The chunks before `chunk`, each with its share of the priority.
fn before<'a>(
    chunk: &'a Chunk,
    (doc_id, ordinal): ChunkKey,
    chunks: &'a HashMap<ChunkKey, Chunk>,
) -> impl Iterator<Item = (u32, f64)> + 'a {
    let ordinals = (ordinal.saturating_sub(REACH)..ordinal).rev();
    walk(chunk, ordinals.map_while(move |ordinal| chunks.get(&(doc_id, ordinal))), false)
}

/// The chunks after `chunk`, each with its share of the priority.
fn after<'a>(
    chunk: &'a Chunk,
    (doc_id, ordinal): ChunkKey,
    chunks: &'a HashMap<ChunkKey, Chunk>,
) -> impl Iterator<Item = (u32, f64)> + 'a {
    let ordinals = ordinal.saturating_add(1)..=ordinal.saturating_add(REACH);
    walk(chunk, ordinals.map_while(move |ordinal| chunks.get(&(doc_id, ordinal))), true)
}

/// The shares of `others`, the chunks on one side of `chunk` from the nearest on, until one is not wanted.
fn walk<'a>(
    chunk: &'a Chunk,
    others: impl Iterator<Item = &'a Chunk> + 'a,
    forward: bool,
) -> impl Iterator<Item = (u32, f64)> + 'a {
    let same = if chunk.path.is_empty() { SAME_TEXT } else { SAME_SECTION };
    let is_below =
        move |other: &Chunk| forward && !chunk.path.is_empty() && other.path.starts_with(&chunk.path);
    let mut decay = 1.0;
    let mut is_over = false;
    others.enumerate().map_while(move |(distance, other)| {
        let share = match other {
            _ if is_over => return None,
            other if other.path == chunk.path => same * decay,
            other if is_below(other) => SECTION_BELOW * decay,
            _ if distance == 0 => NEXT_SECTION,
            _ => return None,
        };
        // What follows the first chunk of another section is not wanted.
        is_over = other.path != chunk.path && !is_below(other);
        decay *= DECAY;
        Some((other.ordinal, share))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::render::tests::{chunk, doc};

    /// The ordinals in the order in which they are taken, when the first of `found` is the best.
    fn order(found: &[u32], paths: &[&[&str]]) -> Vec<u32> {
        let chunks: HashMap<ChunkKey, Chunk> = (0_u32..)
            .zip(paths)
            .map(|(ordinal, path)| ((doc(1), ordinal), chunk(ordinal, path, "text")))
            .collect();
        let found: Vec<FoundChunk> =
            found.iter().map(|&ordinal| FoundChunk { key: (doc(1), ordinal), score: 1.0 }).collect();
        wanted(&found, &chunks).into_iter().map(|wanted| wanted.key.1).collect()
    }

    #[test]
    fn section_of_the_best_chunk_is_completed_before_the_second_best_is_taken() {
        let paths: &[&[&str]] = &[&["A"], &["B"], &["B"], &["C"], &["D"]];
        assert_eq!(order(&[1, 4], paths), [1, 2, 4, 0, 3]);
    }

    #[test]
    fn sections_below_follow_and_sections_beside_do_not() {
        let paths: &[&[&str]] = &[&["A"], &["A", "a"], &["A", "b"], &["B"], &["B"]];
        assert_eq!(order(&[0], paths), [0, 1, 2]);
        assert_eq!(order(&[3], paths), [3, 4, 2]);
    }

    #[test]
    fn text_without_headings_is_completed_later() {
        let paths: &[&[&str]] = &[&[], &[], &[], &[], &[]];
        assert_eq!(order(&[2, 0], paths), [2, 0, 1, 3, 4]);
    }
}
