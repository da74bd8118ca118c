//! Text that a page holds but does not show: written for machines, not for readers.

use crate::{
    page::{Line, Page, Rect},
    read::Engine,
    render::{PageBitmap, contrast},
};

/// Pixels that a page is drawn with to see whether pale text shows.
const PIXELS: u32 = 300_000;

/// The least difference of grey between a text and what it stands on.
const CONTRAST: u8 = 12;

/// The most pages of a file that are drawn to see whether pale text shows.
const DRAWN_PAGES: usize = 100;

/// How the pages of a file are looked at.
#[derive(Debug)]
pub(crate) struct Looks {
    /// How many more pages may be drawn.
    pictures: usize,
    /// Pages of which nobody can say whether their pale text shows.
    pub(crate) unknown: usize,
}

impl Default for Looks {
    fn default() -> Self {
        Self { pictures: DRAWN_PAGES, unknown: 0 }
    }
}

/// Leaves out the lines of a page that it does not show.
pub(crate) fn drop_hidden(engine: &dyn Engine, index: usize, page: &mut Page, looks: &mut Looks) {
    let before = page.lines.len();
    drop_undrawn(engine, index, page);
    if page.lines.iter().any(|line| line.pale) {
        drop_pale(engine, index, page, looks);
    }
    page.hidden += before - page.lines.len();
    page.mend();
}

/// Pale text is seen where a picture of the page shows contrast. Of pages that cannot be drawn it is seen where
/// something else is painted.
fn drop_pale(engine: &dyn Engine, index: usize, page: &mut Page, looks: &mut Looks) {
    if looks.pictures > 0 && !page.turned {
        looks.pictures -= 1;
        if let (Some(frame), Some(picture)) =
            (page.frame, engine.renderer().ok().and_then(|renderer| renderer.render(index, PIXELS)))
        {
            return page.lines.retain(|line| !line.pale || shows(line, frame, &picture));
        }
    }
    match engine.ground(index) {
        Some(ground) => {
            page.lines.retain(|line| !line.pale || line.place.is_none_or(|place| ground.is_under(place)));
        }
        None => looks.unknown += 1,
    }
}

/// Text that is not drawn is what a scanner has read where something else is painted there; beside more text that is
/// drawn it is hidden.
fn drop_undrawn(engine: &dyn Engine, index: usize, page: &mut Page) {
    let count = |undrawn: bool| -> usize {
        page.lines.iter().filter(|line| line.undrawn == undrawn).map(|line| line.text.len()).sum()
    };
    let (drawn, undrawn) = (count(false), count(true));
    if drawn > undrawn {
        page.lines.retain(|line| !line.undrawn);
    } else if undrawn > 0
        && let Some(ground) = engine.ground(index)
    {
        page.lines.retain(|line| !line.undrawn || line.place.is_none_or(|place| ground.is_under(place)));
    }
}

/// Whether the image shows anything in the line's area. Lines without a known area count as shown.
fn shows(line: &Line, frame: Rect, image: &PageBitmap) -> bool {
    let Some(place) = line.place else { return true };
    contrast(image, frame, place).is_none_or(|contrast| contrast >= CONTRAST)
}
