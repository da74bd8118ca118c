use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lkr_parsers::{Error, ErrorKind, Ocr, PageImage, Result};

use crate::{
    languages::{codes, names},
    process::run,
};

/// How long the program may take to tell which languages it has.
const PATIENCE: Duration = Duration::from_secs(10);

/// The program tesseract with the languages that it is to look for.
#[derive(Debug, Clone)]
pub struct Tesseract {
    program: PathBuf,
    /// In tesseract's own names, joined by `+`.
    languages: String,
    missing: Vec<String>,
    /// Whether it can tell which way up a page is.
    turns: bool,
}

impl Tesseract {
    /// The plugin's name.
    pub const NAME: &str = "tesseract";

    /// The program at `program`, to look for text in these languages: codes of ISO 639-1. Blocks.
    ///
    /// # Errors
    /// `Internal` where the program cannot be run, and where it has the data of none of these languages.
    pub fn new(program: &Path, languages: &[impl AsRef<str>]) -> Result<Self> {
        let installed = installed(program)?;
        let is_installed = |name: &&str| installed.iter().any(|known| known == name);
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for code in languages.iter().map(AsRef::as_ref) {
            let before = there.len();
            there.extend(names(code).filter(is_installed));
            if there.len() == before {
                missing.push(code.to_owned());
            }
        }
        if there.is_empty() {
            let reason = format!("it has no data for the languages asked for: {}", missing.join(", "));
            return Err(Error::new(ErrorKind::Internal, "open tesseract", reason));
        }
        let turns = is_installed(&"osd");
        Ok(Self { program: program.to_owned(), languages: there.join("+"), missing, turns })
    }

    /// The languages that were asked for and whose data is not installed.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The languages that the program at `program` has data of: codes of ISO 639-1, in order. Blocks.
    ///
    /// # Errors
    /// `Internal` where the program cannot be run.
    pub fn languages(program: &Path) -> Result<Vec<&'static str>> {
        Ok(codes(&installed(program)?))
    }
}

/// What data the program has, in its own names.
fn installed(program: &Path) -> Result<Vec<String>> {
    let printed = run(program, &["--list-langs"], Vec::new(), Instant::now() + PATIENCE)?;
    let listed = [String::from_utf8_lossy(&printed.output).into_owned(), printed.errors].join("\n");
    Ok(listed.lines().map(|line| line.trim().to_owned()).collect())
}

impl Ocr for Tesseract {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String> {
        let dpi = image.dpi.to_string();
        // Page segmentation mode 1 turns the page upright first, 3 takes it as it is.
        let mode = if self.turns { "1" } else { "3" };
        let arguments = ["stdin", "stdout", "--psm", mode, "--dpi", &dpi, "-l", &self.languages];
        let printed = run(&self.program, &arguments, pgm(image)?, deadline)?;
        let text = String::from_utf8_lossy(&printed.output);
        // A form feed ends each page.
        Ok(text.replace('\u{c}', "").trim().to_owned())
    }
}

/// The picture as a portable grey map (Netpbm's P5), which needs no encoder.
fn pgm(image: &PageImage<'_>) -> Result<Vec<u8>> {
    let pixels = u64::from(image.width) * u64::from(image.height);
    if pixels == 0 || pixels != image.grey.len() as u64 {
        let reason = format!("{} bytes are no {} × {} pixels", image.grey.len(), image.width, image.height);
        return Err(Error::new(ErrorKind::Input, "read a picture", reason));
    }
    let head = format!("P5\n{} {}\n255\n", image.width, image.height);
    Ok([head.as_bytes(), image.grey].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program, where it is installed. In CI it has to be.
    fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let found = std::env::split_paths(&path).map(|dir| dir.join("tesseract")).find(|file| file.is_file());
        if found.is_none() {
            lkr_test_support::skip("tesseract is not installed");
        }
        found
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// A picture of the letters `HI`, drawn as bars.
    fn hi() -> (u32, u32, Vec<u8>) {
        let (width, height) = (400, 300);
        let black = |x: u32, y: u32| {
            let bar = |from: u32| (from..from + 16).contains(&x);
            (100..200).contains(&y)
                && (bar(120) || bar(184) || bar(240) || ((120..200).contains(&x) && (142..158).contains(&y)))
        };
        let pixel = |at: u32| if black(at % width, at / width) { 0 } else { 255 };
        (width, height, (0..width * height).map(pixel).collect())
    }

    #[test]
    fn text_in_a_picture_is_read() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en", "xx"]).unwrap();
        let (width, height, grey) = hi();
        let text = tesseract.read(&PageImage { width, height, grey: &grey, dpi: 200 }, soon()).unwrap();
        assert!(text.to_uppercase().contains("HI"), "{text:?}");
    }

    #[test]
    fn an_empty_page_has_no_text() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en"]).unwrap();
        let grey = vec![255; 300 * 300];
        let image = PageImage { width: 300, height: 300, grey: &grey, dpi: 200 };
        assert_eq!(tesseract.read(&image, soon()).unwrap(), "");
    }

    #[test]
    fn a_deadline_is_kept() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en"]).unwrap();
        let (width, height, grey) = hi();
        let image = PageImage { width, height, grey: &grey, dpi: 200 };
        let error = tesseract.read(&image, Instant::now()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = Tesseract::new(Path::new("/no/such/program"), &["en"]).unwrap_err();
        assert!(error.to_string().starts_with("run tesseract: "), "{error}");
        let Some(program) = program() else { return };
        let error = Tesseract::new(&program, &["xx", "zz"]).unwrap_err();
        assert!(error.to_string().ends_with("asked for: xx, zz"), "{error}");
        assert_eq!(Tesseract::new(&program, &["xx", "en", "zz"]).unwrap().missing(), ["xx", "zz"]);
        assert!(Tesseract::languages(&program).unwrap().contains(&"en"));
    }

    #[test]
    fn a_picture_has_as_many_bytes_as_pixels() {
        let image = PageImage { width: 2, height: 2, grey: &[0; 4], dpi: 200 };
        assert_eq!(pgm(&image).unwrap(), b"P5\n2 2\n255\n\0\0\0\0");
        for wrong in [PageImage { width: 3, ..image }, PageImage { width: 0, grey: &[], ..image }] {
            assert_eq!(pgm(&wrong).unwrap_err().kind(), ErrorKind::Input);
        }
    }
}
