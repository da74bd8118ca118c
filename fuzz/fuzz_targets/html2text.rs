#![no_main]

use libfuzzer_sys::fuzz_target;
use lkr_fuzz::{allow_caught_panics, check};
use lkr_parsers_html::PlainHtml;

fuzz_target!(init: allow_caught_panics(), |bytes: &[u8]| check(&PlainHtml, bytes));
