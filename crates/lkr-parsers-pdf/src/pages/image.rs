//! The image of a page.

use lkr_parsers::Result;

use super::PageFrame;
use crate::error;

/// A rendered page: red, green, blue and alpha of each pixel, row by row from the top.
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgba: Vec<u8>,
}

/// Most pixels of an image: a page of A4 at a width of 2,000 pixels has 5,700,000.
const MAX_PIXELS: f32 = 8_000_000.0;

/// The size of the image of a page in pixels: of this width, or smaller if it had too many pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are finite and positive")]
pub(super) fn size(frame: &PageFrame, width: u32) -> (u32, u32) {
    let (page_width, page_height) = frame.size();
    let wanted = width as f32;
    let height = wanted * (page_height / page_width);
    let shrink = (MAX_PIXELS / (wanted * height)).sqrt().min(1.0);
    let whole = |length: f32| (length * shrink).floor().clamp(1.0, MAX_PIXELS) as u32;
    (whole(wanted), whole(height))
}

/// Encodes a PNG: grey if no pixel has a colour.
pub(super) fn png(pixels: &Pixels) -> Result<Vec<u8>> {
    let rgba = pixels.rgba.as_chunks::<4>().0;
    let is_grey = rgba.iter().all(|[red, green, blue, _]| red == green && green == blue);
    let (color, data): (_, Vec<u8>) = if is_grey {
        (png::ColorType::Grayscale, rgba.iter().map(|[grey, ..]| *grey).collect())
    } else {
        (png::ColorType::Rgb, rgba.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect())
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width, pixels.height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&data)?;
        writer.finish()
    });
    written.map_err(error::from_png)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Rect;

    fn frame(width: f32, height: f32) -> PageFrame {
        PageFrame::new(Rect { left: 0.0, bottom: 0.0, right: width, top: height }, 0)
    }

    #[test]
    fn image_has_the_wanted_width_unless_it_would_have_too_many_pixels() {
        assert_eq!(size(&frame(600.0, 800.0), 900), (900, 1200));
        for tall in [(100.0, 14_400.0), (1.0, 14_400.0), (14_400.0, 1.0), (0.001, 1e6)] {
            let (width, height) = size(&frame(tall.0, tall.1), 2_000);
            assert!(
                width >= 1 && height >= 1 && u64::from(width) * u64::from(height) <= 8_010_000,
                "{tall:?}"
            );
        }
    }

    #[test]
    fn grey_page_is_encoded_as_grey() {
        let png_of =
            |pixel: [u8; 4]| png(&Pixels { width: 2, height: 1, rgba: [pixel, pixel].concat() }).unwrap();
        let color = |bytes: Vec<u8>| {
            png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap().info().color_type
        };
        assert_eq!(color(png_of([9, 9, 9, 255])), png::ColorType::Grayscale);
        assert_eq!(color(png_of([9, 9, 8, 255])), png::ColorType::Rgb);
    }
}
