//! The parser conformance suite for pdf_oxide.

lkr_parsers::parser_conformance!(lkr_parsers_pdf::PdfOxide::default());
