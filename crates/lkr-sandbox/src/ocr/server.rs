use std::{
    io::{self, BufRead, Read as _, Write},
    sync::Arc,
    time::Instant,
};

use lkr_parsers::{Ocr, PageImage, Result};

use super::message::{Answer, Opened, PageRequest, broken, read_line, worker_error, write_line};

/// OCR that was opened in a process of its own.
#[derive(Debug)]
pub struct OpenedOcr {
    /// Recognises text.
    pub ocr: Arc<dyn Ocr>,
    /// A warning for the user, for example about languages that are not installed.
    pub warning: Option<String>,
}

/// Answers requests until the input ends. The input comes from a worker that may have been taken over by its file.
pub(crate) fn serve(
    opened: Result<OpenedOcr>,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<()> {
    let OpenedOcr { ocr, warning } = match opened {
        Ok(opened) => opened,
        Err(error) => return write_line(output, &Answer::<Opened>::Failed(worker_error(error))),
    };
    write_line(output, &Answer::Done(Opened { warning }))?;
    while let Some(request) = read_line::<PageRequest>(input)? {
        let answer = match recognise(ocr.as_ref(), &request, input) {
            Ok(text) => Answer::Done(text),
            Err(error) => Answer::Failed(worker_error(error)),
        };
        write_line(output, &answer)?;
    }
    Ok(())
}

fn recognise(ocr: &dyn Ocr, request: &PageRequest, input: &mut impl BufRead) -> Result<String> {
    let PageRequest { width, height, dpi, time } = *request;
    let length = u64::from(width) * u64::from(height);
    let mut grey = Vec::new();
    grey.try_reserve_exact(usize::try_from(length).map_err(broken)?).map_err(broken)?;
    input.take(length).read_to_end(&mut grey).map_err(broken)?;
    let image = PageImage { width, height, grey: &grey, dpi };
    let deadline = Instant::now().checked_add(time).ok_or_else(|| broken("the time limit is too long"))?;
    ocr.read(&image, deadline)
}

#[cfg(test)]
mod tests {
    use std::{io::BufReader, time::Duration};

    use super::*;

    #[derive(Debug)]
    struct Measure;

    impl Ocr for Measure {
        fn name(&self) -> &'static str {
            "measure"
        }

        fn read(&self, image: &PageImage<'_>, _: Instant) -> Result<String> {
            Ok(format!("{}x{}: {}", image.width, image.height, image.grey.len()))
        }
    }

    fn request(width: u32, height: u32) -> Vec<u8> {
        let request = PageRequest { width, height, dpi: 200, time: Duration::from_secs(1) };
        [serde_json::to_vec(&request).unwrap(), b"\n".to_vec()].concat()
    }

    fn answers(input: &[u8]) -> (bool, String) {
        let mut output = Vec::new();
        let opened = OpenedOcr { ocr: Arc::new(Measure), warning: None };
        let served = serve(Ok(opened), &mut BufReader::new(input), &mut output);
        (served.is_ok(), String::from_utf8(output).unwrap())
    }

    #[test]
    fn pages_are_answered_in_order() {
        let input = [request(2, 1), b"ab".to_vec(), request(1, 1), b"c".to_vec()].concat();
        let expected = "{\"done\":{\"warning\":null}}\n{\"done\":\"2x1: 2\"}\n{\"done\":\"1x1: 1\"}\n";
        assert_eq!(answers(&input), (true, expected.to_owned()));
    }

    #[test]
    fn malformed_request_ends_the_process_and_impossible_size_is_an_error() {
        assert!(!answers(b"not a request\n").0);
        let (_, output) = answers(&request(u32::MAX, u32::MAX));
        assert!(output.contains("failed"), "{output}");
    }
}
