use std::collections::BTreeMap;

use bytes::Bytes;
use time::macros::datetime;

use super::*;
use crate::records::{FailuresV1, KeyScopeV1, encode, listed_key, session_key};

const SET_FIRST: OffsetDateTime = datetime!(2026-01-01 00:00 UTC);
const SET_LATER: OffsetDateTime = datetime!(2026-01-02 00:00 UTC);

fn bob() -> AccountV1 {
    AccountV1 {
        id: "1".to_owned(),
        username: "bob".to_owned(),
        admin: false,
        created_at: OffsetDateTime::UNIX_EPOCH,
        must_change_password: false,
        disabled: false,
        password: "hash".to_owned(),
        epoch: 3,
        key_epoch: 1,
        password_at: None,
    }
}

fn disabled(account: &AccountV1) -> AccountV1 {
    AccountV1 { disabled: true, epoch: account.epoch + 1, ..account.clone() }
}

fn with_password(account: &AccountV1, password: &str, at: OffsetDateTime) -> AccountV1 {
    AccountV1 {
        password: password.to_owned(),
        password_at: Some(at),
        epoch: account.epoch + 1,
        ..account.clone()
    }
}

/// Merges records of one key; `related` are accounts.
struct Case<'a> {
    key: &'a str,
    base: Option<Vec<u8>>,
    ours: Option<Vec<u8>>,
    theirs: Option<Vec<u8>>,
    related: BTreeMap<Key, Option<Bytes>>,
    restricting: bool,
}

impl Case<'_> {
    fn merge(&self) -> Merged {
        AuthMergePolicy.merge(&OfflineChange {
            key: self.key,
            base: self.base.as_deref(),
            ours: self.ours.as_deref(),
            theirs: self.theirs.as_deref(),
            ttl: None,
            related: &self.related,
            restricting: self.restricting,
        })
    }
}

fn account_case(
    base: Option<&AccountV1>,
    ours: Option<&AccountV1>,
    theirs: Option<&AccountV1>,
    restricting: bool,
) -> Merged {
    let [base, ours, theirs] = [base, ours, theirs].map(|account| account.map(|a| encode(a).unwrap()));
    let related = BTreeMap::new();
    Case { key: "auth/account/bob", base, ours, theirs, related, restricting }.merge()
}

/// The merged account, which must differ from the store's.
#[track_caller]
fn merged(base: &AccountV1, ours: &AccountV1, theirs: &AccountV1) -> AccountV1 {
    match account_case(Some(base), Some(ours), Some(theirs), false) {
        Merged::Put { value, ttl: None } => decode(&value).unwrap(),
        merged => panic!("expected a new record, got {merged:?}"),
    }
}

#[track_caller]
fn assert_overruled(merged: &Merged) {
    assert!(matches!(merged, Merged::Overruled(_)), "{merged:?}");
}

#[test]
fn change_of_an_account_that_nobody_else_changed_is_kept() {
    let base = bob();
    let admin = AccountV1 { admin: true, ..bob() };
    let renewed = AccountV1 { password: "more iterations".to_owned(), ..bob() };
    let enabled = AccountV1 { disabled: false, ..disabled(&base) };
    for (base, ours) in [
        (&base, &disabled(&base)),
        (&base, &admin),
        (&admin, &base),
        (&base, &renewed),
        (&base, &with_password(&base, "new", SET_FIRST)),
        (&disabled(&base), &enabled),
    ] {
        assert!(merged(base, ours, base) == *ours);
    }
    assert_eq!(account_case(Some(&base), Some(&base), Some(&admin), false), Merged::Keep);
}

#[test]
fn deleted_account_stays_deleted_on_either_side() {
    let (base, other) = (bob(), AccountV1 { id: "2".to_owned(), ..bob() });
    let changed = disabled(&base);
    assert_eq!(account_case(Some(&base), None, Some(&changed), false), Merged::Delete);
    assert_eq!(account_case(Some(&base), None, Some(&changed), true), Merged::Delete);
    assert_eq!(account_case(Some(&base), None, None, false), Merged::Keep);
    assert_overruled(&account_case(Some(&base), Some(&changed), None, false));
    assert_overruled(&account_case(Some(&base), None, Some(&other), false));
    assert_overruled(&account_case(Some(&base), Some(&changed), Some(&other), false));
}

#[test]
fn new_account_is_created_unless_its_name_was_taken() {
    let (ours, other) = (bob(), AccountV1 { id: "2".to_owned(), ..bob() });
    assert!(matches!(account_case(None, Some(&ours), None, false), Merged::Put { .. }));
    assert_eq!(account_case(None, Some(&ours), Some(&ours), false), Merged::Keep);
    assert_overruled(&account_case(None, Some(&ours), Some(&other), false));
    assert_overruled(&account_case(None, Some(&ours), None, true));
}

#[test]
fn disable_on_either_side_wins() {
    let base = bob();
    let password = with_password(&base, "new", SET_FIRST);
    for (ours, theirs) in [(&disabled(&base), &password), (&password, &disabled(&base))] {
        let merged = merged(&base, ours, theirs);
        assert!(merged.disabled && merged.password == "new" && merged.epoch == 5);
    }
    let off = disabled(&base);
    let enabled = AccountV1 { disabled: false, ..off.clone() };
    let disabled_again = disabled(&enabled);
    assert_eq!(
        account_case(Some(&off), Some(&enabled), Some(&disabled_again), false),
        Merged::Keep,
        "an enable does not undo a later disable"
    );
}

#[test]
fn password_that_was_set_last_wins_and_all_sessions_end() {
    let base = bob();
    let (first, later) = (with_password(&base, "first", SET_FIRST), with_password(&base, "later", SET_LATER));
    for (ours, theirs) in [(&first, &later), (&later, &first)] {
        let merged = merged(&base, ours, theirs);
        assert_eq!((merged.password.as_str(), merged.epoch), ("later", 5));
        assert_eq!(merged.password_at, Some(SET_LATER));
    }
    let renewed = AccountV1 { password: "more iterations".to_owned(), ..bob() };
    assert_eq!(account_case(Some(&base), Some(&renewed), Some(&first), false), Merged::Keep);
    assert_eq!(merged(&base, &first, &renewed).password, "first");
}

#[test]
fn admin_who_lost_the_right_only_takes_rights_away() {
    let admin = AccountV1 { admin: true, ..bob() };
    let demoted_elsewhere = bob();
    let changed =
        |ours: &AccountV1, theirs: &AccountV1| account_case(Some(&admin), Some(ours), Some(theirs), true);
    let reset = with_password(&admin, "planted", SET_LATER);
    match changed(&reset, &admin) {
        Merged::Put { value, .. } => {
            let merged: AccountV1 = decode(&value).unwrap();
            assert!(merged.password == "hash" && merged.epoch == 4, "the reset ends sessions and no more");
        }
        merged => panic!("{merged:?}"),
    }
    assert!(matches!(changed(&disabled(&admin), &admin), Merged::Put { .. }));
    assert!(matches!(changed(&demoted_elsewhere, &admin), Merged::Put { .. }));
    let base = bob();
    assert_eq!(account_case(Some(&base), Some(&admin), Some(&base), true), Merged::Keep, "no promotion");
    let off = disabled(&base);
    let enabled = AccountV1 { disabled: false, ..off.clone() };
    assert_eq!(account_case(Some(&off), Some(&enabled), Some(&off), true), Merged::Keep);
}

#[test]
fn authority_is_lost_with_the_account_its_role_or_its_enabling() {
    let admin = AccountV1 { admin: true, ..bob() };
    let lost = |theirs: Option<&AccountV1>| {
        let value = |account: &AccountV1| encode(account).unwrap();
        let theirs = theirs.map(value);
        AuthMergePolicy.is_authority_lost("auth/account/bob", Some(&value(&admin)), theirs.as_deref())
    };
    assert!(!lost(Some(&with_password(&admin, "new", SET_LATER))));
    assert!(lost(None) && lost(Some(&bob())) && lost(Some(&disabled(&admin))));
    assert!(lost(Some(&AccountV1 { id: "2".to_owned(), ..admin.clone() })));
    assert!(!AuthMergePolicy.is_authority_lost("auth/admins", None, None));
}

fn related(account: Option<&AccountV1>) -> BTreeMap<Key, Option<Bytes>> {
    BTreeMap::from([("auth/account/bob".to_owned(), account.map(|a| encode(a).unwrap().into()))])
}

#[test]
fn session_is_stored_only_if_its_account_accepts_it() {
    let account = bob();
    let session = |expires_at| SessionV1 {
        username: "Bob".to_owned(),
        account_id: account.id.clone(),
        epoch: account.epoch,
        expires_at,
    };
    let key = session_key("hash");
    let tomorrow = OffsetDateTime::now_utc() + time::Duration::days(1);
    let case = |account: Option<&AccountV1>, expires_at| {
        let ours = Some(encode(session(expires_at)).unwrap());
        assert_eq!(AuthMergePolicy.depends_on(&key, ours.as_ref().unwrap()), ["auth/account/bob"]);
        Case { key: &key, base: None, ours, theirs: None, related: related(account), restricting: false }
            .merge()
    };
    assert!(matches!(case(Some(&account), tomorrow), Merged::Put { .. }));
    assert_overruled(&case(Some(&account), OffsetDateTime::UNIX_EPOCH));
    assert_overruled(&case(None, tomorrow));
    assert_overruled(&case(Some(&disabled(&account)), tomorrow));
    assert_overruled(&case(Some(&AccountV1 { epoch: 4, ..bob() }), tomorrow));
    assert_overruled(&case(Some(&AccountV1 { id: "2".to_owned(), ..bob() }), tomorrow));
    let theirs = Some(encode(session(tomorrow)).unwrap());
    let revoked = Case {
        key: &key,
        base: None,
        ours: None,
        theirs,
        related: related(Some(&account)),
        restricting: false,
    };
    assert_eq!(revoked.merge(), Merged::Delete, "a revocation counts even if the session was not known");
    let left = AuthMergePolicy.expires_in(&key, &encode(session(tomorrow)).unwrap()).unwrap();
    assert!(left <= Duration::from_secs(24 * 60 * 60) && left > Duration::from_secs(23 * 60 * 60));
    assert_eq!(
        AuthMergePolicy.expires_in(&key, &encode(session(OffsetDateTime::UNIX_EPOCH)).unwrap()),
        Some(Duration::ZERO)
    );
}

#[test]
fn key_and_its_listing_are_stored_only_if_the_account_accepts_keys() {
    let id = crate::KeyId::new();
    let credential = CredentialV1 {
        key_id: id.to_string(),
        username: "bob".to_owned(),
        account_id: "1".to_owned(),
        key_epoch: 1,
        expires_at: None,
        scope: KeyScopeV1::default(),
    };
    let listed = ListedKeyV1 {
        name: "key".to_owned(),
        created_at: SET_FIRST,
        expires_at: None,
        key_epoch: 1,
        secret_hash: "hash".to_owned(),
        scope: KeyScopeV1::default(),
    };
    let key = credential_key("hash");
    let ours = Some(encode(&credential).unwrap());
    let case = |account: Option<&AccountV1>| {
        let (ours, related) = (ours.clone(), related(account));
        Case { key: &key, base: None, ours, theirs: None, related, restricting: false }.merge()
    };
    assert!(matches!(case(Some(&bob())), Merged::Put { .. }));
    assert!(matches!(case(Some(&disabled(&bob()))), Merged::Put { .. }), "it is refused until an enable");
    assert_overruled(&case(None));
    assert_overruled(&case(Some(&AccountV1 { key_epoch: 2, ..bob() })));
    let listed_key = listed_key("1", id);
    let listing = |stored: bool| {
        let ours = Some(encode(&listed).unwrap());
        assert_eq!(
            AuthMergePolicy.depends_on(&listed_key, ours.as_ref().unwrap()),
            std::slice::from_ref(&key)
        );
        let related = BTreeMap::from([(key.clone(), stored.then(|| Bytes::from("{}")))]);
        Case { key: &listed_key, base: None, ours, theirs: None, related, restricting: false }.merge()
    };
    assert!(matches!(listing(true), Merged::Put { .. }));
    assert_eq!(listing(false), Merged::Keep);
}

#[test]
fn failures_of_both_sides_count() {
    let failures = |at_ms: &[i64]| Some(encode(FailuresV1 { at_ms: at_ms.to_vec() }).unwrap());
    let case = |base, ours, theirs| {
        let related = BTreeMap::new();
        let key = "auth/throttle/account/x";
        Case { key, base, ours, theirs, related, restricting: false }.merge()
    };
    match case(failures(&[1]), failures(&[1, 5]), failures(&[1, 2, 9])) {
        Merged::Put { value, .. } => assert_eq!(decode::<FailuresV1>(&value).unwrap().at_ms, [1, 2, 5, 9]),
        merged => panic!("{merged:?}"),
    }
    assert_eq!(case(failures(&[1]), None, failures(&[1])), Merged::Delete);
    assert_eq!(
        case(failures(&[1]), None, failures(&[1, 2])),
        Merged::Keep,
        "a reset forgets no later failure"
    );
    assert_eq!(case(failures(&[1]), failures(&[1]), failures(&[1, 2, 3])), Merged::Keep);
    match case(None, failures(&[4]), failures(&[4])) {
        Merged::Put { value, .. } => assert_eq!(decode::<FailuresV1>(&value).unwrap().at_ms, [4, 4]),
        merged => panic!("{merged:?}"),
    }
}

#[test]
fn audit_entries_and_the_record_of_admins_are_written() {
    let case = |key: &'static str, theirs: Option<&str>| {
        let (ours, theirs) = (Some(b"1".to_vec()), theirs.map(|theirs| theirs.as_bytes().to_vec()));
        Case { key, base: None, ours, theirs, related: BTreeMap::new(), restricting: true }.merge()
    };
    assert!(matches!(case("audit/x", None), Merged::Put { .. }));
    assert_eq!(case("audit/x", Some("1")), Merged::Keep);
    assert!(matches!(case(ADMINS, Some("1")), Merged::Put { .. }), "concurrent demotions must conflict");
    assert_eq!(case(crate::records::INITIALISED, Some("1")), Merged::Keep);
}

#[test]
fn unreadable_record_is_deleted_but_not_overwritten() {
    let case = |ours: Option<Vec<u8>>| {
        let (base, theirs) = (Some(encode(bob()).unwrap()), Some(b"{\"v\":\"9\"}".to_vec()));
        let related = BTreeMap::new();
        Case { key: "auth/account/bob", base, ours, theirs, related, restricting: false }.merge()
    };
    assert_eq!(case(None), Merged::Delete);
    assert_overruled(&case(Some(encode(disabled(&bob())).unwrap())));
}
