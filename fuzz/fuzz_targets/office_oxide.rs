#![no_main]

use libfuzzer_sys::fuzz_target;
use lkr_fuzz::{allow_caught_panics, as_docx, check};
use lkr_parsers_docx::OfficeOxide;

fuzz_target!(init: allow_caught_panics(), |bytes: &[u8]| check(&OfficeOxide, &as_docx(bytes)));
