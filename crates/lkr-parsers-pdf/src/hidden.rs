//! Text that a page holds but does not show: written for machines, not for readers.

use crate::{
    page::{Line, Page, Rect},
    read::{Engine, Picture},
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
        if let (Some(frame), Some(picture)) = (page.frame, engine.picture(index, PIXELS)) {
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

/// Whether the picture shows anything where the line stands; where it stands is not known, it does.
fn shows(line: &Line, frame: Rect, picture: &Picture) -> bool {
    let Some(place) = line.place else { return true };
    let (width, height) = (picture.width as f32, picture.height as f32);
    let scale = width / (frame.right - frame.left);
    if (height / frame.height() / scale - 1.0).abs() > 0.03 {
        return true;
    }
    let across = pixels((place.left - frame.left) * scale, (place.right - frame.left) * scale, picture.width);
    let down = pixels((frame.top - place.top) * scale, (frame.top - place.bottom) * scale, picture.height);
    let Ok(row) = usize::try_from(picture.width) else { return true };
    let rows = picture.grey.chunks_exact(row.max(1)).skip(down.start).take(down.len());
    let greys = rows.flat_map(|row| row.get(across.clone()).unwrap_or_default());
    let (low, high) = greys.fold((u8::MAX, 0), |(low, high), grey| (low.min(*grey), high.max(*grey)));
    low > high || high - low >= CONTRAST
}

/// The whole pixels from one place to another.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both ends are cut to the picture"
)]
fn pixels(from: f32, to: f32, end: u32) -> std::ops::Range<usize> {
    let cut = |place: f32| place.clamp(0.0, end as f32) as usize;
    cut(from.floor())..cut(to.ceil())
}
