//! Reads the outline of a document from its objects, within limits: engines follow cycles forever, or leave out the
//! position of an entry on its page.

mod destinations;
mod objects;
mod text;

use std::collections::HashSet;

use destinations::Destinations;
pub(crate) use objects::{Id, Objects, Value};
pub(crate) use text::decode;

/// An entry of an outline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) title: String,
    /// 1 for the highest level.
    pub(crate) level: u8,
    /// Its page, from 0.
    pub(crate) page: usize,
    /// The top of its destination on the page, if known.
    pub(crate) top: Option<f32>,
}

/// Most entries of an outline.
pub(crate) const MAX_ENTRIES: usize = 20_000;

/// Most levels of an outline.
pub(crate) const MAX_DEPTH: u8 = 32;

/// The entries of the outline that have a page, in order.
pub(crate) fn entries(objects: &dyn Objects) -> Vec<Entry> {
    let mut reader = OutlineReader {
        objects,
        destinations: Destinations::new(objects),
        visited: HashSet::new(),
        entries: vec![],
    };
    let root = objects.catalog().and_then(|catalog| objects.get(&catalog, "Outlines"));
    if let Some(first) = root.and_then(|root| root.reference("First")) {
        reader.siblings(first, 1);
    }
    reader.entries
}

struct OutlineReader<'a> {
    objects: &'a dyn Objects,
    destinations: Destinations<'a>,
    visited: HashSet<Id>,
    entries: Vec<Entry>,
}

impl OutlineReader<'_> {
    fn siblings(&mut self, first: Id, level: u8) {
        let mut next = Some(first);
        while let Some(id) = next {
            if self.entries.len() >= MAX_ENTRIES || !self.visited.insert(id) {
                return;
            }
            let Some(item) = self.objects.object(id) else { return };
            self.entry(&item, level);
            if let Some(child) = item.reference("First").filter(|_| level < MAX_DEPTH) {
                self.siblings(child, level + 1);
            }
            next = item.reference("Next");
        }
    }

    fn entry(&mut self, item: &Value, level: u8) {
        let title = self.objects.get(item, "Title").and_then(|title| title.bytes().map(decode));
        let target = self.objects.get(item, "Dest").or_else(|| {
            let action = self.objects.get(item, "A")?;
            self.objects.get(&action, "D")
        });
        let target = target.and_then(|target| self.destinations.find(&target));
        if let (Some(title), Some((page, top))) = (title, target) {
            self.entries.push(Entry { title, level, page, top });
        }
    }
}

#[cfg(test)]
mod tests;
