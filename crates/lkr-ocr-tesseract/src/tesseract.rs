use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lkr_parsers::{Error, ErrorKind, Ocr, PageImage, Result};

use crate::{
    data_files::{names, supported_codes},
    process::run,
    program_files::{ProgramFiles, program_files},
};

/// The timeout of listing the installed languages. Chosen, not measured.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// OCR by the program tesseract, for a list of languages.
#[derive(Debug, Clone)]
pub struct Tesseract {
    program: PathBuf,
    /// Tesseract's names of the languages, joined by `+`.
    languages: String,
    missing: Vec<String>,
    /// Whether the data for detecting the orientation of a page (`osd`) is installed.
    detects_orientation: bool,
}

impl Tesseract {
    /// The name of the plugin.
    pub const NAME: &str = "tesseract";

    /// Opens the program at `program` for these languages (ISO 639-1 codes). Blocking.
    ///
    /// # Errors
    /// `Internal` if the program cannot be run, or if the data of none of these languages is installed.
    pub fn new(program: &Path, languages: &[impl AsRef<str>]) -> Result<Self> {
        let installed = installed_data(program)?;
        let is_installed = |name: &&str| installed.iter().any(|installed| installed == name);
        let (mut available, mut missing) = (Vec::new(), Vec::new());
        for code in languages.iter().map(AsRef::as_ref) {
            let before = available.len();
            available.extend(names(code).filter(is_installed));
            if available.len() == before {
                missing.push(code.to_owned());
            }
        }
        if available.is_empty() {
            let reason = format!("no data is installed for the requested languages: {}", missing.join(", "));
            return Err(Error::new(ErrorKind::Internal, "open tesseract", reason));
        }
        let detects_orientation = is_installed(&"osd");
        Ok(Self { program: program.to_owned(), languages: available.join("+"), missing, detects_orientation })
    }

    /// The requested languages whose data is not installed.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The files that the program at `program` needs, for a sandbox.
    #[must_use]
    pub fn files(program: &Path) -> ProgramFiles {
        program_files(program)
    }

    /// The installed languages of the program at `program`, as sorted ISO 639-1 codes. Blocking.
    ///
    /// # Errors
    /// `Internal` if the program cannot be run.
    pub fn languages(program: &Path) -> Result<Vec<&'static str>> {
        Ok(supported_codes(&installed_data(program)?))
    }
}

/// The names of the installed data files.
fn installed_data(program: &Path) -> Result<Vec<String>> {
    let result = run(program, &["--list-langs"], Vec::new(), Instant::now() + LIST_TIMEOUT)?;
    let listed = [String::from_utf8_lossy(&result.stdout).into_owned(), result.stderr].join("\n");
    Ok(listed.lines().map(|line| line.trim().to_owned()).collect())
}

impl Ocr for Tesseract {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String> {
        let dpi = image.dpi.to_string();
        // Page segmentation mode 1 corrects the orientation of the page first, mode 3 does not.
        let mode = if self.detects_orientation { "1" } else { "3" };
        let arguments = ["stdin", "stdout", "--psm", mode, "--dpi", &dpi, "-l", &self.languages];
        let result = run(&self.program, &arguments, pgm(image)?, deadline)?;
        let text = String::from_utf8_lossy(&result.stdout);
        // Tesseract ends each page with a form feed.
        Ok(text.replace('\u{c}', "").trim().to_owned())
    }
}

/// Encodes the image as a portable grey map (Netpbm's P5), which needs no library.
fn pgm(image: &PageImage<'_>) -> Result<Vec<u8>> {
    let pixels = u64::from(image.width) * u64::from(image.height);
    if pixels == 0 || pixels != image.grey.len() as u64 {
        let reason =
            format!("{} bytes do not match {} × {} pixels", image.grey.len(), image.width, image.height);
        return Err(Error::new(ErrorKind::Input, "read image", reason));
    }
    let head = format!("P5\n{} {}\n255\n", image.width, image.height);
    Ok([head.as_bytes(), image.grey].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of the program; `None` if it is not installed, which fails in CI.
    fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let found = std::env::split_paths(&path).map(|dir| dir.join("tesseract")).find(|file| file.is_file());
        if found.is_none() {
            lkr_test_support::skip("tesseract is not installed");
        }
        found
    }

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// An image of the letters `HI`, drawn as bars.
    fn hi_image() -> (u32, u32, Vec<u8>) {
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
    fn text_in_an_image_is_recognised() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en", "xx"]).unwrap();
        let (width, height, grey) = hi_image();
        let text = tesseract.read(&PageImage { width, height, grey: &grey, dpi: 200 }, deadline()).unwrap();
        assert!(text.to_uppercase().contains("HI"), "{text:?}");
    }

    #[test]
    fn empty_page_has_no_text() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en"]).unwrap();
        let grey = vec![255; 300 * 300];
        let image = PageImage { width: 300, height: 300, grey: &grey, dpi: 200 };
        assert_eq!(tesseract.read(&image, deadline()).unwrap(), "");
    }

    #[test]
    fn run_beyond_the_deadline_is_a_limit_error() {
        let Some(program) = program() else { return };
        let tesseract = Tesseract::new(&program, &["en"]).unwrap();
        let (width, height, grey) = hi_image();
        let image = PageImage { width, height, grey: &grey, dpi: 200 };
        let error = tesseract.read(&image, Instant::now()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn missing_program_and_languages_are_named() {
        let error = Tesseract::new(Path::new("/no/such/program"), &["en"]).unwrap_err();
        assert!(error.to_string().starts_with("run tesseract: "), "{error}");
        let Some(program) = program() else { return };
        let error = Tesseract::new(&program, &["xx", "zz"]).unwrap_err();
        assert!(error.to_string().ends_with("requested languages: xx, zz"), "{error}");
        assert_eq!(Tesseract::new(&program, &["xx", "en", "zz"]).unwrap().missing(), ["xx", "zz"]);
        assert!(Tesseract::languages(&program).unwrap().contains(&"en"));
    }

    #[test]
    fn image_whose_bytes_do_not_match_its_size_is_refused() {
        let image = PageImage { width: 2, height: 2, grey: &[0; 4], dpi: 200 };
        assert_eq!(pgm(&image).unwrap(), b"P5\n2 2\n255\n\0\0\0\0");
        for wrong in [PageImage { width: 3, ..image }, PageImage { width: 0, grey: &[], ..image }] {
            assert_eq!(pgm(&wrong).unwrap_err().kind(), ErrorKind::Input);
        }
    }
}
