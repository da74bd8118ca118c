//! Removes text that a page contains but does not show.

use crate::{
    page::{Line, Page, Rect},
    read::Engine,
    render::{PageBitmap, contrast},
};

/// Pixels of a page that is rendered to check pale text. See docs/studies.md#hidden-text.
const CHECK_PIXELS: u32 = 300_000;

/// The least difference of grey between visible text and its background. See docs/studies.md#hidden-text.
const MIN_CONTRAST: u8 = 12;

/// Most pages of a file that are rendered to check pale text.
const MAX_RENDERED_PAGES: usize = 100;

/// The state of the visibility checks of a file.
#[derive(Debug)]
pub(crate) struct VisibilityChecks {
    /// How many more pages may be rendered.
    renders_left: usize,
    /// How many pages have pale text of unknown visibility.
    pub(crate) unknown: usize,
}

impl Default for VisibilityChecks {
    fn default() -> Self {
        Self { renders_left: MAX_RENDERED_PAGES, unknown: 0 }
    }
}

/// Removes the invisible lines of a page.
pub(crate) fn drop_hidden(engine: &dyn Engine, index: usize, page: &mut Page, checks: &mut VisibilityChecks) {
    let before = page.lines.len();
    drop_undrawn(engine, index, page);
    if page.lines.iter().any(|line| line.is_pale) {
        drop_pale(engine, index, page, checks);
    }
    page.hidden += before - page.lines.len();
    page.join_lines();
}

/// Pale text is visible if the rendered page shows contrast. On pages that cannot be rendered it is visible where
/// another object is painted under it.
fn drop_pale(engine: &dyn Engine, index: usize, page: &mut Page, checks: &mut VisibilityChecks) {
    if checks.renders_left > 0 && !page.is_rotated {
        checks.renders_left -= 1;
        if let (Some(frame), Some(image)) =
            (page.frame, engine.renderer().ok().and_then(|renderer| renderer.render(index, CHECK_PIXELS)))
        {
            return page.lines.retain(|line| !line.is_pale || shows(line, frame, &image));
        }
    }
    match engine.painted_areas(index) {
        Some(painted_areas) => {
            page.lines
                .retain(|line| !line.is_pale || line.place.is_none_or(|place| painted_areas.is_under(place)));
        }
        None => checks.unknown += 1,
    }
}

/// Undrawn text over a painted area is the OCR text of a scanner. It is hidden if more text is
/// drawn on the page.
fn drop_undrawn(engine: &dyn Engine, index: usize, page: &mut Page) {
    let count = |is_undrawn: bool| -> usize {
        page.lines.iter().filter(|line| line.is_undrawn == is_undrawn).map(|line| line.text.len()).sum()
    };
    let (drawn, is_undrawn) = (count(false), count(true));
    if drawn > is_undrawn {
        page.lines.retain(|line| !line.is_undrawn);
    } else if is_undrawn > 0
        && let Some(painted_areas) = engine.painted_areas(index)
    {
        page.lines
            .retain(|line| !line.is_undrawn || line.place.is_none_or(|place| painted_areas.is_under(place)));
    }
}

/// Whether the image shows anything in the line's area. Lines without a known area count as shown.
fn shows(line: &Line, frame: Rect, image: &PageBitmap) -> bool {
    let Some(place) = line.place else { return true };
    contrast(image, frame, place).is_none_or(|contrast| contrast >= MIN_CONTRAST)
}
