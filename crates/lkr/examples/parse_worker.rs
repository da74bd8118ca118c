//! A parser worker and nothing else. The tests of files start it.

use std::process::ExitCode;

fn main() -> ExitCode {
    lkr::files::run_worker()
}
