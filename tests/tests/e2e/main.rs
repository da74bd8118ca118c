//! Tests of the built server as a process: over HTTP, with kills and restarts.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic on failure")]
#![expect(clippy::print_stderr, reason = "tests print their seeds and counts")]

mod administration;
mod backup;
mod bad_input;
mod cancel;
mod citations;
mod cli;
mod console;
mod docs;
mod doctor;
mod evaluation;
mod fair_ingestion;
mod files;
mod full_disk;
mod http_layer;
mod kill9;
mod language_models;
mod lesson_01_every_task_ends;
mod lesson_02_the_queue_survives;
mod lesson_05_deletes_leave_nothing;
mod lesson_08_single_executable;
mod lesson_12_reembedding;
mod lesson_14_webhooks;
mod lesson_26_outgoing_hosts;
mod lesson_27_hostile_files;
mod lesson_35_slow_clients;
mod logs;
mod migration;
mod quick_start;
mod rerank;
mod revoked_rights;
mod second_process;
mod secrets;
mod several_processes;
mod shared_ratios;
mod shell;
mod sigterm;
mod slow_readers;
mod space_kills;
mod sync;
mod traces;
mod unread_bodies;
mod upgrade;
mod upgrade_kills;
mod without_model;
