use lkr_state::{Merged, OfflineChange};

use crate::records::{AccountV1, decode, encode};

/// Merges a change of an account.
///
/// - Deleted accounts stay deleted, and an account that was created on both sides is the one of the store.
/// - A disable on one side wins over whatever the other side did; an enable counts if the other side did nothing.
/// - The password that was set last wins, by the clocks of the processes.
/// - Sessions and keys end that ended on one side. If both sides ended some, all end, because an epoch that both sides
///   began would let sessions of either side through.
pub(super) fn merge(change: &OfflineChange<'_>) -> Merged {
    let account = |value: Option<&[u8]>| value.map(decode::<AccountV1>).transpose();
    let (Ok(base), Ok(ours), Ok(theirs)) =
        (account(change.base), account(change.ours), account(change.theirs))
    else {
        // A record that this version cannot read is not overwritten, but it can be deleted.
        return change
            .ours
            .map_or(Merged::Delete, |_| Merged::overruled(change.key, "the record is unreadable"));
    };
    let is_same = |other: &AccountV1| base.as_ref().is_some_and(|base| base.id == other.id);
    match (&base, ours, theirs) {
        (_, None, None) => Merged::Keep,
        (_, None, Some(theirs)) if is_same(&theirs) => Merged::Delete,
        (_, None, Some(_)) => Merged::overruled(change.key, "the name belongs to another account now"),
        (None, Some(_), _) if change.restricting => {
            Merged::overruled(change.key, "the admin who created the account is none any more")
        }
        (None, Some(_), None) => change.accept(),
        (None, Some(ours), Some(theirs)) if ours == theirs => Merged::Keep,
        (None, Some(_), Some(_)) => Merged::overruled(change.key, "the name was taken meanwhile"),
        (Some(base), Some(ours), _) if *base == ours => Merged::Keep,
        (Some(_), Some(_), None) => Merged::overruled(change.key, "the account was deleted meanwhile"),
        (Some(base), Some(ours), Some(theirs)) if is_same(&theirs) => {
            let merged = combine(base, &ours, &theirs, change.restricting);
            if merged == theirs {
                return Merged::Keep;
            }
            encode(merged).map_or(Merged::Keep, |value| Merged::Put { value: value.into(), ttl: change.ttl })
        }
        (Some(_), Some(_), Some(_)) => Merged::overruled(change.key, "the account was replaced meanwhile"),
    }
}

/// The account after the changes of both sides.
fn combine(base: &AccountV1, ours: &AccountV1, theirs: &AccountV1, restricting: bool) -> AccountV1 {
    let password = if restricting { theirs } else { newer_password(base, ours, theirs) };
    AccountV1 {
        admin: if restricting { ours.admin && theirs.admin } else { merged_admin(base, ours, theirs) },
        disabled: merged_disabled(base, ours, theirs, restricting),
        password: password.password.clone(),
        must_change_password: password.must_change_password,
        password_at: password.password_at,
        epoch: merged_epoch(base.epoch, ours.epoch, theirs.epoch),
        key_epoch: merged_epoch(base.key_epoch, ours.key_epoch, theirs.key_epoch),
        ..theirs.clone()
    }
}

/// Of two possible roles, both sides changed to the same one.
fn merged_admin(base: &AccountV1, ours: &AccountV1, theirs: &AccountV1) -> bool {
    if ours.admin == base.admin { theirs.admin } else { ours.admin }
}

/// Each disable begins an epoch. So an account that was disabled, enabled and disabled again counts as changed.
fn merged_disabled(base: &AccountV1, ours: &AccountV1, theirs: &AccountV1, restricting: bool) -> bool {
    let is_unchanged = theirs.disabled == base.disabled && theirs.epoch == base.epoch;
    if is_unchanged && !restricting { ours.disabled } else { ours.disabled || theirs.disabled }
}

/// The side whose password counts. A hash that was only renewed is no new password.
fn newer_password<'a>(base: &AccountV1, ours: &'a AccountV1, theirs: &'a AccountV1) -> &'a AccountV1 {
    let is_changed = |side: &AccountV1| side.password_at != base.password_at;
    match (is_changed(ours), is_changed(theirs)) {
        (true, true) if ours.password_at > theirs.password_at => ours,
        (true, false) => ours,
        (false, false) if theirs.password == base.password => ours,
        _ => theirs,
    }
}

fn merged_epoch(base: u64, ours: u64, theirs: u64) -> u64 {
    let have_both_grown = ours > base && theirs > base;
    ours.max(theirs) + u64::from(have_both_grown)
}
