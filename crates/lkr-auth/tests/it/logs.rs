//! What a refused login leaves in the log.

use std::{
    io,
    sync::{Arc, Mutex},
};

use lkr_auth::{Attempt, AuthOptions, Role, ThrottleOptions};
use lkr_state::MemoryState;

use crate::support::{OTHER, PASSWORD, add, attempt, auth_over, by, disabled, options};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

#[tokio::test]
async fn lesson_32_a_refused_login_is_logged_without_what_was_typed() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let throttle = ThrottleOptions { account: 2, address: 4, ..ThrottleOptions::default() };
    let options = AuthOptions { throttle, ..options() };
    let (auth, _) = auth_over(Arc::new(MemoryState::default()), &options).await;
    add(&auth, "Bob", Role::User).await;
    auth.change_account("bob", disabled(true), by("admin")).await.unwrap();
    add(&auth, "Ada", Role::User).await;
    lines.take();

    let typed = "hunter2hunter2";
    let here = Some("192.0.2.7".parse().unwrap());
    for (username, password, reason, logged) in [
        ("bob", OTHER, "wrong password", "Bob"),
        ("BOB", PASSWORD, "disabled", "Bob"),
        ("bob", PASSWORD, "throttled account", "Bob"),
        (typed, OTHER, "unknown account", "unknown"),
        (typed, OTHER, "unknown account", "unknown"),
        (typed, OTHER, "throttled account", "unknown"),
        ("ada", PASSWORD, "throttled address", "Ada"),
    ] {
        let attempt = Attempt { address: here, ..attempt(username, password) };
        assert!(!format!("{attempt:?}").contains(username), "nor is it in the attempt's debug form");
        auth.login(attempt).await.unwrap_err();
        let line = lines.take();
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in [
            " WARN ",
            "a login was refused",
            &format!("reason=\"{reason}\""),
            &format!("username=\"{logged}\""),
            "address=192.0.2.7",
            "request_id=\"r-3\"",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains(typed) && !line.contains(PASSWORD) && !line.contains(OTHER));
    }
    auth.login(attempt("ada", PASSWORD)).await.unwrap();
    assert_eq!(lines.take(), "", "a login that succeeds is none of this");
}
