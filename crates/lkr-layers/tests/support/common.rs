//! What has to hold of every document's layers.
#![allow(dead_code, reason = "no test target uses all helpers")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests call this")]

use lkr_domain::{BlockKind, CharSpan, Layered, Parsed};
use lkr_layers::{LayerOptions, layer, word_coverage};
use lkr_parsers::{Markdown, Parser as _};
use lkr_text::estimate_tokens;

/// The layers of a Markdown text, checked.
pub(crate) fn layered(text: &str) -> Layered {
    let parsed = Markdown.parse(&text.into()).unwrap();
    checked(&parsed, "")
}

/// The layers of a Markdown text that has a title of its own, checked.
pub(crate) fn titled(text: &str, title: &str) -> Layered {
    checked(&Markdown.parse(&text.into()).unwrap(), title)
}

/// The layers of a Markdown file whose name is its title, checked.
pub(crate) fn file_named(text: &str, name: &str) -> Layered {
    let options = LayerOptions { title_is_file_name: true, ..LayerOptions::default() };
    checked_with(&Markdown.parse(&text.into()).unwrap(), name, &options)
}

/// The layers of `parsed`, checked against everything that has to hold.
pub(crate) fn checked(parsed: &Parsed, title: &str) -> Layered {
    checked_with(parsed, title, &LayerOptions::default())
}

fn checked_with(parsed: &Parsed, title: &str, options: &LayerOptions) -> Layered {
    let layered = layer(parsed, title, options);
    let chars: Vec<char> = parsed.text.chars().collect();
    assert_eq!(layered.root.char_count as usize, chars.len());
    assert!(layered.root.keywords.len() <= 10);
    assert!(layered.root.summary.chars().count() <= 400);
    if parsed.text.trim().is_empty() {
        assert!(layered.l2.is_empty() && layered.l3.is_empty() && layered.chunks.is_empty());
        return layered;
    }
    assert!(!layered.root.title.is_empty());
    assert!(!layered.root.summary.is_empty());
    nested(&layered);
    assert_eq!(word_coverage(parsed, &layered).missing, [""; 0], "words that no search finds");
    chunks_are_cut_from(&layered, &chars);
    covers(&layered, parsed, &chars);
    layered
}

/// L2 nodes as `title [path]`, their L3 nodes two columns in, and the chunks four: `text [path]`.
pub(crate) fn tree(layered: &Layered) -> Vec<String> {
    let mut tree = Vec::new();
    for section in &layered.l2 {
        tree.push(format!("{} {:?}", section.title, section.path));
        for passage in layered.l3.iter().filter(|node| node.parent == Some(section.ordinal)) {
            tree.push(format!("  {} {:?}", passage.title, passage.path));
            for chunk in layered.chunks.iter().filter(|chunk| chunk.parent == passage.ordinal) {
                tree.push(format!("    {} {:?}", chunk.text, chunk.path));
            }
        }
    }
    tree
}

fn nested(layered: &Layered) {
    assert!(!layered.l2.is_empty() && !layered.l3.is_empty() && !layered.chunks.is_empty());
    in_order(layered.l2.iter().map(|node| node.span));
    in_order(layered.l3.iter().map(|node| node.span));
    in_order(layered.chunks.iter().map(|chunk| chunk.span));
    for (ordinal, node) in layered.l2.iter().enumerate() {
        assert_eq!((node.ordinal as usize, node.parent), (ordinal, None));
        assert!(!node.title.is_empty() && node.summary.chars().count() <= 240);
        assert!(layered.l3.iter().any(|child| child.parent == Some(node.ordinal)), "{node:?} has no L3 node");
    }
    for (ordinal, node) in layered.l3.iter().enumerate() {
        let parent = &layered.l2[node.parent.unwrap() as usize];
        assert_eq!(node.ordinal as usize, ordinal);
        assert!(parent.span.contains(node.span), "{parent:?} {node:?}");
        assert!(!node.title.is_empty() && node.summary.chars().count() <= 240);
        assert!(node.path.starts_with(&parent.path), "{parent:?} {node:?}");
        assert!(layered.chunks.iter().any(|child| child.parent == node.ordinal), "{node:?} has no chunk");
    }
    for (ordinal, chunk) in layered.chunks.iter().enumerate() {
        let parent = &layered.l3[chunk.parent as usize];
        assert_eq!(chunk.ordinal as usize, ordinal);
        assert!(parent.span.contains(chunk.span), "{parent:?} {chunk:?}");
        assert!(chunk.path.starts_with(&parent.path), "{parent:?} {chunk:?}");
    }
    assert!(layered.l3.is_sorted_by_key(|node| node.parent));
    assert!(layered.chunks.is_sorted_by_key(|chunk| chunk.parent));
}

fn in_order(spans: impl Iterator<Item = CharSpan>) {
    let mut end = 0;
    for span in spans {
        assert!(end <= span.start && span.start < span.end, "{span:?} begins before {end} or is empty");
        end = span.end;
    }
}

fn chunks_are_cut_from(layered: &Layered, chars: &[char]) {
    for chunk in &layered.chunks {
        let cut: String = chars[chunk.span.start as usize..chunk.span.end as usize].iter().collect();
        assert_eq!(cut, chunk.text);
        assert!(!chunk.text.trim().is_empty());
        assert_eq!(chunk.text.trim(), chunk.text);
        let tokens = estimate_tokens(&chunk.text);
        assert!(tokens <= 231, "{tokens} tokens in {:?}", chunk.text);
        // White space and marks cost no tokens, and still have an end.
        assert!(chunk.text.len() <= 128 << 10, "a chunk of {} bytes", chunk.text.len());
    }
}

/// All text that is neither white space, heading nor furniture is in a chunk, and no furniture is, where there is
/// other text.
fn covers(layered: &Layered, parsed: &Parsed, chars: &[char]) {
    let mut inside = vec![false; chars.len()];
    for chunk in &layered.chunks {
        inside[chunk.span.start as usize..chunk.span.end as usize].fill(true);
    }
    let mut outside_blocks = vec![None; chars.len()];
    for block in &parsed.blocks {
        let start = parsed.text.get(..block.range.start).unwrap().chars().count();
        let end = start + parsed.text.get(block.range.clone()).unwrap().chars().count();
        let role = if block.furniture {
            Some('f')
        } else {
            matches!(block.kind, BlockKind::Heading { .. }).then_some('h')
        };
        outside_blocks[start..end].fill(role);
    }
    let all_furniture = layered.chunks.len() == 1
        && outside_blocks.iter().zip(chars).all(|(role, c)| role.is_some() || c.is_whitespace());
    for (at, c) in chars.iter().enumerate().filter(|(_, c)| !c.is_whitespace() && **c != '\u{feff}') {
        match outside_blocks[at] {
            None => assert!(inside[at], "{c:?} at {at} is in no chunk"),
            Some('f') => assert!(!inside[at] || all_furniture, "furniture at {at} is in a chunk"),
            Some(_) => {}
        }
    }
}
