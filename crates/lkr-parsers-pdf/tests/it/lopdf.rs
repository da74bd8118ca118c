//! The parser conformance suite for lopdf.

lkr_parsers::parser_conformance!(lkr_parsers_pdf::Lopdf::default());
