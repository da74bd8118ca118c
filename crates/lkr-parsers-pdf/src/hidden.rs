//! Text that a page holds but does not show: written for machines, not for readers.

use crate::{
    page::{Line, Page, Rect},
    read::{Engine, Picture},
};

/// Pixels that a page is drawn with to see whether pale text shows.
const PIXELS: u32 = 300_000;

/// The least difference of grey between a text and what it stands on.
const CONTRAST: u8 = 12;

/// Leaves out the lines of a page that it does not show. `pictures` counts down the pages that may still be drawn.
pub(crate) fn drop_hidden(engine: &dyn Engine, index: usize, page: &mut Page, pictures: &mut usize) {
    let before = page.lines.len();
    drop_undrawn(page);
    if page.lines.iter().any(|line| line.pale) && *pictures > 0 && !page.turned {
        *pictures -= 1;
        if let (Some(frame), Some(picture)) = (page.frame, engine.picture(index, PIXELS)) {
            page.lines.retain(|line| !line.pale || shows(line, frame, &picture));
        }
    }
    page.hidden += before - page.lines.len();
    page.mend();
}

/// Text that is not drawn is what a scanner has read, and all there is; beside more text that is drawn it is hidden.
fn drop_undrawn(page: &mut Page) {
    let count = |undrawn: bool| -> usize {
        page.lines.iter().filter(|line| line.undrawn == undrawn).map(|line| line.text.len()).sum()
    };
    if count(false) > count(true) {
        page.lines.retain(|line| !line.undrawn);
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
