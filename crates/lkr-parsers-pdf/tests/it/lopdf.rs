//! The suite of every parser, for lopdf.

lkr_parsers::parser_conformance!(lkr_parsers_pdf::Lopdf::default());
