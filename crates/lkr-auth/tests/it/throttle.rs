//! Failed logins.

use std::{net::IpAddr, sync::Arc, time::Duration};

use lkr_auth::{Auth, AuthOptions, Error, ErrorKind, LoginAttempt, Role, ThrottleOptions};
use lkr_state::{Expect, MemoryState, StateStore, StateStoreExt, Write};

use crate::support::{
    OTHER, PASSWORD, add, all_records, attempt, auth_over, auth_with_admin, by, disabled, interleaving_state,
    kind_of, login, options,
};

fn limits(account: usize, address: usize) -> AuthOptions {
    let throttle = ThrottleOptions { account, address, ..ThrottleOptions::default() };
    AuthOptions { throttle, ..options() }
}

async fn limited(account: usize, address: usize) -> (Auth, Arc<dyn StateStore>) {
    auth_over(Arc::new(MemoryState::default()), &limits(account, address)).await
}

async fn login_from(
    auth: &Auth,
    address: &str,
    username: &str,
    password: &str,
) -> Result<lkr_auth::Login, Error> {
    let address: IpAddr = address.parse().unwrap();
    auth.login(LoginAttempt { address: Some(address), ..attempt(username, password) }).await
}

fn is_limited<T>(result: Result<T, Error>) -> bool {
    matches!(kind_of(result), ErrorKind::RateLimited { .. })
}

#[tokio::test]
async fn lesson_32_right_password_is_refused_after_ten_failures() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "ada", Role::User).await;
    for n in 0..10 {
        assert_eq!(kind_of(login(&auth, "admin", OTHER).await), ErrorKind::Unauthenticated, "{n}");
    }
    for name in ["admin", "ADMIN"] {
        let error = login(&auth, name, PASSWORD).await.unwrap_err();
        let ErrorKind::RateLimited { retry_after } = error.kind() else { panic!("{error}") };
        assert!(retry_after > Duration::from_secs(800) && retry_after <= Duration::from_secs(900));
        assert!(error.is_retryable());
    }
    assert!(login(&auth, "ada", PASSWORD).await.is_ok(), "other accounts are not affected");
}

#[tokio::test]
async fn lesson_32_unknown_names_are_throttled_like_known_ones() {
    let (auth, state) = limited(2, 100).await;
    let long_name = "x".repeat(2000);
    for name in ["admin", "nobody", "a b", "", &long_name] {
        for _ in 0..2 {
            assert_eq!(kind_of(login(&auth, name, OTHER).await), ErrorKind::Unauthenticated, "{name}");
        }
        assert!(is_limited(login(&auth, name, OTHER).await), "{name}");
    }
    assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("nobody")), "names are hashed");
}

#[tokio::test]
async fn success_resets_the_count_of_the_account_but_not_of_the_address() {
    let (auth, _) = limited(3, 5).await;
    add(&auth, "ada", Role::User).await;
    let (address, other_address) = ("192.0.2.7", "192.0.2.8");
    for _ in 0..2 {
        for _ in 0..2 {
            let refused = login_from(&auth, address, "admin", OTHER).await;
            assert_eq!(kind_of(refused), ErrorKind::Unauthenticated);
        }
        assert!(login_from(&auth, address, "admin", PASSWORD).await.is_ok());
    }
    assert_eq!(
        kind_of(login_from(&auth, address, "nobody", OTHER).await),
        ErrorKind::Unauthenticated,
        "the fifth failure"
    );
    assert!(is_limited(login_from(&auth, address, "ada", PASSWORD).await));
    assert!(is_limited(login_from(&auth, "::ffff:192.0.2.7", "ada", PASSWORD).await), "the same address");
    assert!(login_from(&auth, other_address, "ada", PASSWORD).await.is_ok());
    assert!(login(&auth, "ada", PASSWORD).await.is_ok(), "without an address, only the account counts");
}

#[tokio::test]
async fn admin_who_gives_access_resets_the_counts_of_the_account() {
    let (auth, _) = limited(2, 100).await;
    let lock_out = async || {
        for _ in 0..2 {
            login(&auth, "Ada", OTHER).await.unwrap_err();
        }
        assert!(is_limited(login(&auth, "ada", PASSWORD).await));
    };
    lock_out().await;
    add(&auth, "ada", Role::User).await;
    assert!(
        login(&auth, "ada", PASSWORD).await.is_ok(),
        "failures with the name before there was an account"
    );
    for _ in 0..2 {
        auth.change_password("ada", "wrong one", OTHER, by("ada")).await.unwrap_err();
    }
    lock_out().await;
    auth.change_account("ada", disabled(false), by("admin")).await.unwrap();
    assert!(is_limited(login(&auth, "ada", PASSWORD).await), "it was enabled already");
    auth.reset_password("ada", PASSWORD, by("admin")).await.unwrap();
    assert!(login(&auth, "ada", PASSWORD).await.is_ok(), "an admin has set the password");
    assert!(
        auth.change_password("ada", PASSWORD, OTHER, by("ada")).await.is_ok(),
        "changes are counted anew too"
    );
    auth.reset_password("ada", PASSWORD, by("admin")).await.unwrap();
    auth.change_account("ada", disabled(true), by("admin")).await.unwrap();
    lock_out().await;
    auth.change_account("ada", disabled(false), by("admin")).await.unwrap();
    assert!(login(&auth, "ada", PASSWORD).await.is_ok(), "an admin has enabled it");
}

#[tokio::test]
async fn registration_resets_the_failed_logins_with_its_name() {
    let (auth, _) = limited(2, 100).await;
    for _ in 0..2 {
        login(&auth, "ada", OTHER).await.unwrap_err();
    }
    auth.register(attempt("ada", PASSWORD)).await.unwrap();
    assert!(login(&auth, "ada", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn lesson_32_ipv6_network_counts_as_one_address() {
    let (auth, _) = limited(10, 2).await;
    for n in 1..=2 {
        let refused = login_from(&auth, &format!("2001:db8::{n}"), &format!("name{n}"), OTHER).await;
        assert_eq!(kind_of(refused), ErrorKind::Unauthenticated);
    }
    assert!(is_limited(login_from(&auth, "2001:db8::ffff:3", "admin", PASSWORD).await));
    assert!(login_from(&auth, "2001:db8:0:1::1", "admin", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn failures_outside_the_window_do_not_count() {
    let (auth, state) = limited(2, 2).await;
    for _ in 0..2 {
        login_from(&auth, "192.0.2.7", "admin", OTHER).await.unwrap_err();
    }
    assert!(is_limited(login_from(&auth, "192.0.2.7", "admin", PASSWORD).await));
    let window = Duration::from_millis(5);
    let throttle = ThrottleOptions { account: 2, address: 2, window };
    let brief = Auth::new(state, &AuthOptions { throttle, ..options() }).unwrap();
    tokio::time::sleep(window).await;
    assert!(login_from(&brief, "192.0.2.7", "admin", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn counts_are_removed_after_the_window() {
    let throttle = ThrottleOptions { account: 2, address: 2, window: Duration::from_millis(100) };
    let options = AuthOptions { throttle, ..options() };
    let (auth, state) = auth_over(Arc::new(MemoryState::default()), &options).await;
    login_from(&auth, "192.0.2.7", "admin", OTHER).await.unwrap_err();
    tokio::time::sleep(throttle.window).await;
    assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("throttle")));
}

#[tokio::test]
async fn lesson_32_counts_apply_on_every_node() {
    let (auth, state) = limited(2, 100).await;
    let other = Auth::new(state, &limits(2, 100)).unwrap();
    login(&auth, "admin", OTHER).await.unwrap_err();
    login(&other, "admin", OTHER).await.unwrap_err();
    assert!(is_limited(login(&auth, "admin", PASSWORD).await));
    assert!(is_limited(login(&other, "admin", PASSWORD).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_32_concurrent_attempts_do_not_exceed_the_limit_of_an_account() {
    for seed in 0..5 {
        let many = AuthOptions { max_concurrent_hashes: 8, ..options() };
        let (auth, _) = auth_over(interleaving_state(seed), &many).await;
        let attempts = (0..60).map(|_| {
            let auth = auth.clone();
            tokio::spawn(async move { login(&auth, "admin", OTHER).await })
        });
        let mut verified = 0;
        for task in attempts.collect::<Vec<_>>() {
            match kind_of(task.await.unwrap()) {
                ErrorKind::Unauthenticated => verified += 1,
                ErrorKind::RateLimited { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(verified, 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_32_address_exceeds_its_limit_by_at_most_the_concurrent_hashes() {
    let (auth, _) = auth_over(interleaving_state(3), &limits(10, 5)).await;
    let attempts = (0..60).map(|n| {
        let auth = auth.clone();
        tokio::spawn(async move { login_from(&auth, "192.0.2.7", &format!("name{n}"), OTHER).await })
    });
    let mut verified = 0;
    for task in attempts.collect::<Vec<_>>() {
        verified += usize::from(kind_of(task.await.unwrap()) == ErrorKind::Unauthenticated);
    }
    assert!((5..=5 + options().max_concurrent_hashes).contains(&verified), "{verified}");
}

/// Its hash is computed all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempt_that_is_dropped_while_it_is_verified_counts_as_a_failure() {
    let slow = AuthOptions { iterations: 1_000_000, ..limits(3, 100) };
    let (auth, _) = auth_over(Arc::new(MemoryState::default()), &slow).await;
    for _ in 0..200 {
        let attempt = login(&auth, "admin", OTHER);
        if let Ok(result) = tokio::time::timeout(Duration::from_millis(20), attempt).await {
            assert!(is_limited(result));
            return;
        }
    }
    panic!("no attempt was refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_32_concurrent_failures_are_all_counted() {
    let many = AuthOptions { max_concurrent_hashes: 16, ..limits(10, 100) };
    let (auth, state) = auth_over(interleaving_state(5), &many).await;
    let attempts = (0..40).map(|n| {
        let auth = auth.clone();
        tokio::spawn(async move { login_from(&auth, "192.0.2.7", &format!("name{n}"), OTHER).await })
    });
    for task in attempts.collect::<Vec<_>>() {
        assert_eq!(kind_of(task.await.unwrap()), ErrorKind::Unauthenticated);
    }
    let exact = Auth::new(Arc::clone(&state), &limits(10, 40)).unwrap();
    assert!(is_limited(login_from(&exact, "192.0.2.7", "admin", PASSWORD).await));
    let one_more = Auth::new(state, &limits(10, 41)).unwrap();
    assert!(login_from(&one_more, "192.0.2.7", "admin", PASSWORD).await.is_ok());
}

/// A login that reads a damaged hash fails with an internal error, so the error shows whether the hash was read.
#[tokio::test]
async fn throttled_attempt_hashes_nothing() {
    let (auth, state) = limited(1, 100).await;
    add(&auth, "ada", Role::User).await;
    for name in ["admin", "ada"] {
        let key = format!("auth/account/{name}");
        let record = state.get(&key).await.unwrap().unwrap();
        let damaged = String::from_utf8_lossy(&record.value).replace("$pbkdf2", "pbkdf2");
        if name == "admin" {
            login(&auth, name, OTHER).await.unwrap_err();
        }
        state.apply(vec![Write::put(key, Expect::Any, damaged)]).await.unwrap();
    }
    assert!(is_limited(login(&auth, "admin", PASSWORD).await));
    assert_eq!(kind_of(login(&auth, "ada", PASSWORD).await), ErrorKind::Internal);
}

#[tokio::test]
async fn disabled_account_is_reported_only_after_the_right_password() {
    let (auth, _) = limited(3, 100).await;
    add(&auth, "bob", Role::User).await;
    auth.change_account("bob", disabled(true), by("admin")).await.unwrap();
    let wrong = login(&auth, "bob", OTHER).await.unwrap_err();
    assert!(!wrong.to_string().contains("disabled"));
    for _ in 0..2 {
        let right = login(&auth, "bob", PASSWORD).await.unwrap_err();
        assert_eq!(right.kind(), ErrorKind::Unauthenticated);
        assert!(right.to_string().contains("disabled"));
    }
    assert!(is_limited(login(&auth, "bob", PASSWORD).await));
}

#[tokio::test]
async fn lesson_32_stolen_token_cannot_guess_the_password() {
    let (auth, _) = limited(3, 100).await;
    let change = async |current: &str| auth.change_password("admin", current, OTHER, by("admin")).await;
    for _ in 0..3 {
        assert_eq!(kind_of(change("wrong password").await), ErrorKind::Unauthenticated);
    }
    assert!(is_limited(change(PASSWORD).await));
    assert!(login(&auth, "admin", PASSWORD).await.is_ok(), "logins are counted separately");
    assert!(is_limited(change(PASSWORD).await), "a login does not reset this count");
}

#[tokio::test]
async fn password_change_resets_its_own_count() {
    let (auth, _) = limited(2, 100).await;
    for (current, new) in [(PASSWORD, OTHER), (OTHER, PASSWORD)] {
        let wrong = auth.change_password("admin", "wrong password", new, by("admin")).await;
        assert_eq!(kind_of(wrong), ErrorKind::Unauthenticated);
        assert!(auth.change_password("admin", current, new, by("admin")).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_32_concurrent_password_changes_do_not_exceed_the_limit() {
    let (auth, _) = auth_over(interleaving_state(11), &limits(4, 100)).await;
    let attempts = (0..30).map(|_| {
        let auth = auth.clone();
        tokio::spawn(async move { auth.change_password("admin", "wrong one", OTHER, by("admin")).await })
    });
    let mut verified = 0;
    for task in attempts.collect::<Vec<_>>() {
        verified += usize::from(kind_of(task.await.unwrap()) == ErrorKind::Unauthenticated);
    }
    assert_eq!(verified, 4);
}

#[tokio::test]
async fn lesson_32_registrations_from_an_address_are_limited() {
    let (auth, _) = auth_with_admin().await;
    let register = async |name: String, address: &str| {
        let attempt = LoginAttempt { address: Some(address.parse().unwrap()), ..attempt(&name, PASSWORD) };
        auth.register(attempt).await
    };
    for n in 0..100 {
        register(format!("user-{n}"), "192.0.2.1").await.unwrap();
    }
    let refused = kind_of(register("one-more".to_owned(), "192.0.2.1").await);
    assert!(matches!(refused, ErrorKind::RateLimited { .. }), "{refused:?}");
    assert!(register("one-more".to_owned(), "192.0.2.2").await.is_ok());
    assert!(login(&auth, "user-99", PASSWORD).await.is_ok());
}
