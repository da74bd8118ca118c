//! Two services get the same random operations. One also gets operations in spaces that the observers may not read. All
//! answers to observers are equal, byte for byte, apart from durations.
//!
//! The clock and the ids are injected, so that hidden operations shift neither. After each operation the services wait for
//! the end of their tasks, so that answers do not depend on their speed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by a panic and shows its seed"
)]

#[path = "../api/conformance.rs"]
mod conformance;
mod generator;
mod hidden;
mod operation_clock;
mod refusing_embedder;
mod service;
#[expect(dead_code, reason = "the tests of `api` use more of it")]
#[path = "../api/support.rs"]
mod support;
mod visible;

use std::{collections::VecDeque, env};

use futures_util::{StreamExt, future::join, stream};
use serde_json::Value;

use crate::{
    generator::Generator,
    operation_clock::Place,
    service::{Answer, Caller, Operation, Service, Setup, start},
    support::App,
};

/// The operations of a sequence. Each sequence begins with new services.
const OPERATIONS: usize = 250;

/// The sequences of each test.
const SEQUENCES: u64 = 10;

/// How many of them run at a time. Those of embedded stores wait for the disk most of their time.
const SEQUENCES_AT_A_TIME: usize = 4;

/// The seed of the first sequence, unless `LKR_TEST_SEED` gives another one.
const SEED: u64 = 37;

/// How many of the last operations are printed with a difference.
const SHOWN: usize = 12;

/// How many bytes of answers that differ are printed, on each side of the first difference.
const SHOWN_BYTES: usize = 300;

/// The two services of a sequence, and the last operations.
struct Pair<S, T> {
    seed: u64,
    quiet: Service<S>,
    busy: Service<T>,
    generator: Generator,
    shown: VecDeque<String>,
}

impl<S: App, T: App> Pair<S, T> {
    fn show(&mut self, place: &str, number: usize, operation: &Operation, answer: &Answer) {
        let Operation { caller, method, path, body, idempotency_key } = operation;
        let body = body.as_ref().map(Value::to_string).unwrap_or_default();
        let key = idempotency_key.as_deref().unwrap_or_default();
        let status = answer.status;
        self.shown.push_back(format!("{number} {place} {caller:?} {method} {path} {body} {key} -> {status}"));
        if self.shown.len() > SHOWN {
            self.shown.pop_front();
        }
    }

    async fn visible(&mut self, number: usize) {
        let operation = self.generator.visible_operation();
        let (quiet, busy) = join(
            self.quiet.perform(&operation, number, Place::Both),
            self.busy.perform(&operation, number, Place::Both),
        )
        .await;
        self.show("both", number, &operation, &quiet);
        if Caller::OBSERVERS.contains(&operation.caller) && quiet != busy {
            let shown: Vec<_> = self.shown.iter().map(String::as_str).collect();
            let (seed, shown) = (self.seed, shown.join("\n"));
            panic!("LKR_TEST_SEED={seed}: the answers differ: {}\n{shown}", difference(&quiet, &busy));
        }
        self.generator.learn(&operation, &quiet);
    }

    async fn hidden(&mut self, number: usize, nth: u64) {
        let operation = self.generator.hidden_operation();
        let answer = self.busy.perform(&operation, number, Place::Busy(nth)).await;
        self.show("busy", number, &operation, &answer);
        if let Ok(body) = serde_json::from_str(&answer.body) {
            self.generator.hidden.learn(&body);
        }
    }
}

/// Where two answers begin to differ.
fn difference(quiet: &Answer, busy: &Answer) -> String {
    let [quiet, busy] =
        [quiet, busy].map(|Answer { status, headers, body }| format!("{status} {headers:?} {body}"));
    let at = quiet.bytes().zip(busy.bytes()).take_while(|(a, b)| a == b).count();
    let [quiet, busy] = [quiet, busy].map(|answer| {
        let around = &answer.as_bytes()[at.saturating_sub(SHOWN_BYTES)..answer.len().min(at + SHOWN_BYTES)];
        String::from_utf8_lossy(around).into_owned()
    });
    format!("at byte {at}\nquiet: …{quiet}…\nbusy:  …{busy}…")
}

async fn check(setup: Setup) {
    let first = env::var("LKR_TEST_SEED").map_or(SEED, |seed| seed.parse().expect("a seed"));
    let check = |seed| check_sequence(setup, seed);
    stream::iter(first..first + SEQUENCES).for_each_concurrent(SEQUENCES_AT_A_TIME, check).await;
}

async fn check_sequence(setup: Setup, seed: u64) {
    eprintln!("LKR_TEST_SEED={seed}");
    let (quiet, busy) = (start(setup).await, start(setup).await);
    let mut pair = Pair { seed, quiet, busy, generator: Generator::new(seed), shown: VecDeque::new() };
    for number in 1..=OPERATIONS {
        pair.visible(number).await;
        for nth in 0..pair.generator.below(3) as u64 {
            pair.hidden(number, nth).await;
        }
    }
}

#[actix_web::test]
async fn lesson_37_hidden_changes_show_in_no_answer() {
    check(Setup { is_embedded: false, has_model: true, finds_near_duplicates: false }).await;
}

#[actix_web::test]
async fn hidden_changes_show_in_no_answer_if_near_duplicates_are_found() {
    check(Setup { is_embedded: false, has_model: true, finds_near_duplicates: true }).await;
}

#[actix_web::test]
async fn hidden_changes_show_in_no_answer_without_an_embedding_model() {
    check(Setup { is_embedded: false, has_model: false, finds_near_duplicates: false }).await;
}

#[actix_web::test]
async fn hidden_changes_show_in_no_answer_of_embedded_stores() {
    check(Setup { is_embedded: true, has_model: true, finds_near_duplicates: true }).await;
}
