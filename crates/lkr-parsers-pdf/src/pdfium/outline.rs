use std::collections::HashSet;

use pdfium_render::prelude::{PdfBookmark, PdfDestination, PdfDestinationViewSettings as View, PdfDocument};

use crate::outline::{Entry, MAX_DEPTH, MAX_ENTRIES};

/// The entries of the outline that have a page, in order.
pub(super) fn entries(document: &PdfDocument<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut visited = HashSet::new();
    if let Some(first) = document.bookmarks().root() {
        siblings(first, 1, &mut visited, &mut entries);
    }
    entries
}

fn siblings<'a>(
    first: PdfBookmark<'a>,
    level: u8,
    visited: &mut HashSet<PdfBookmark<'a>>,
    entries: &mut Vec<Entry>,
) {
    let mut next = Some(first);
    while let Some(item) = next {
        if entries.len() >= MAX_ENTRIES || !visited.insert(item.clone()) {
            return;
        }
        entries.extend(entry(&item, level));
        if let Some(child) = item.first_child().filter(|_| level < MAX_DEPTH) {
            siblings(child, level + 1, visited, entries);
        }
        next = item.next_sibling();
    }
}

fn entry(item: &PdfBookmark<'_>, level: u8) -> Option<Entry> {
    let destination = item.destination()?;
    let page = usize::try_from(destination.page_index().ok()?).ok()?;
    Some(Entry { title: item.title()?, level, page, top: top(&destination) })
}

/// The top of a destination.
fn top(destination: &PdfDestination<'_>) -> Option<f32> {
    match destination.view_settings().ok()? {
        View::SpecificCoordinatesAndZoom(_, top, _)
        | View::FitPageHorizontallyToWindow(top)
        | View::FitBoundsHorizontallyToWindow(top) => top.map(|top| top.value),
        View::FitPageToRectangle(rect) => Some(rect.top().value),
        _ => None,
    }
}
