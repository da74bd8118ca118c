//! Runs that follow the changes of a folder.

use std::time::Duration;

use lkr_sync::{Next, Trigger, WatchOptions};

use crate::bench::{Bench, run};

fn quick() -> WatchOptions {
    WatchOptions { quiet: Duration::from_millis(50), ..WatchOptions::default() }
}

#[test]
fn change_after_a_run_triggers_the_next() {
    let bench = Bench::new(&[("sub/a.txt", "one")]);
    let (mut sync, mut triggers) = (bench.open(), Vec::new());
    sync.watch(quick(), &(), &mut |sync, trigger| {
        triggers.push(trigger);
        run(sync, &bench.service).unwrap();
        match triggers.len() {
            1 => bench.write("sub/new/b.txt", "two"),
            2 => bench.remove("sub/a.txt"),
            _ => return Next::Stop,
        }
        Next::Watch
    })
    .unwrap();
    assert_eq!(triggers, [Trigger::Start, Trigger::Changed, Trigger::Changed]);
    drop(sync);
    assert_eq!(bench.stored(), ["sub/new/b.txt"]);
}

#[test]
fn own_files_and_reads_trigger_nothing() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let options = WatchOptions { rescan: Duration::from_millis(400), ..quick() };
    let (mut sync, mut triggers) = (bench.open(), Vec::new());
    sync.watch(options, &(), &mut |sync, trigger| {
        triggers.push(trigger);
        run(sync, &bench.service).unwrap();
        if triggers.len() == 2 { Next::Stop } else { Next::Watch }
    })
    .unwrap();
    assert_eq!(triggers, [Trigger::Start, Trigger::Rescan]);
}

#[test]
fn failed_run_is_repeated_after_the_time_that_it_asks_for() {
    let bench = Bench::new(&[]);
    let (mut sync, mut triggers) = (bench.open(), Vec::new());
    sync.watch(quick(), &(), &mut |_, trigger| {
        triggers.push(trigger);
        if triggers.len() == 2 { Next::Stop } else { Next::RetryIn(Duration::from_millis(20)) }
    })
    .unwrap();
    assert_eq!(triggers, [Trigger::Start, Trigger::Retry]);
}
