//! The log line of a refused login.

use std::{
    io,
    sync::{Arc, Mutex},
};

use lkr_auth::{AuthOptions, LoginAttempt, Role, ThrottleOptions};
use lkr_state::MemoryState;

use crate::support::{OTHER, PASSWORD, add, attempt, auth_over, by, disabled, options};

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogBuffer {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

#[tokio::test]
async fn lesson_32_refused_login_is_logged_without_typed_text() {
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let throttle = ThrottleOptions { account: 2, address: 4, ..ThrottleOptions::default() };
    let options = AuthOptions { throttle, ..options() };
    let (auth, _) = auth_over(Arc::new(MemoryState::default()), &options).await;
    add(&auth, "Bob", Role::User).await;
    auth.change_account("bob", disabled(true), by("admin")).await.unwrap();
    add(&auth, "Ada", Role::User).await;
    log.take();

    let typed = "hunter2hunter2";
    let address = Some("192.0.2.7".parse().unwrap());
    for (username, password, reason, logged) in [
        ("bob", OTHER, "wrong password", "Bob"),
        ("BOB", PASSWORD, "disabled", "Bob"),
        ("bob", PASSWORD, "throttled account", "Bob"),
        (typed, OTHER, "unknown account", "unknown"),
        (typed, OTHER, "unknown account", "unknown"),
        (typed, OTHER, "throttled account", "unknown"),
        ("ada", PASSWORD, "throttled address", "Ada"),
    ] {
        let attempt = LoginAttempt { address, ..attempt(username, password) };
        assert!(!format!("{attempt:?}").contains(username), "the debug form has no username");
        auth.login(attempt).await.unwrap_err();
        let line = log.take();
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in [
            " WARN ",
            "login refused",
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
    assert_eq!(log.take(), "", "a successful login is not logged");
}
