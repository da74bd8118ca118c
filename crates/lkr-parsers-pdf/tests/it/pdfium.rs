//! The parser conformance suite for PDFium.

lkr_parsers::parser_conformance!(crate::common::OptionalPdfium(crate::common::pdfium()));

#[test]
fn load_with_absent_library_fails() {
    let path = std::path::Path::new("absent/libpdfium.so");
    if crate::common::pdfium().is_none() {
        let error = lkr_parsers_pdf::Pdfium::load(path).unwrap_err();
        assert_eq!(error.kind(), lkr_parsers::ErrorKind::Internal);
        assert!(error.to_string().starts_with("load PDFium: absent/libpdfium.so"), "{error}");
    }
}
