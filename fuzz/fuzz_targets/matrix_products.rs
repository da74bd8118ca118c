//! The input is the shape of two matrices, followed by the bits of their numbers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lkr_models_local::fuzzing::check_products;

fuzz_target!(|bytes: &[u8]| check_products(bytes));
