//! The limits of the port, for steps that the remote store does not see at once. A step beyond them could never be merged.

use std::collections::BTreeSet;

use lkr_state::{Error, ErrorKind, Key, Op, Result, Write};

const MAX_KEY_BYTES: usize = 400;
const MAX_VALUE_BYTES: usize = 1 << 20;

/// Checks the keys of a read.
pub(crate) fn check_keys(operation: &'static str, keys: &[Key]) -> Result<()> {
    match keys.iter().find(|key| !(1..=MAX_KEY_BYTES).contains(&key.len())) {
        Some(key) => {
            let message = format!("the key has {} bytes; 1 to {MAX_KEY_BYTES} are allowed", key.len());
            Err(Error::new(ErrorKind::Invalid, operation, message))
        }
        None => Ok(()),
    }
}

/// Checks the keys and values of a step.
pub(crate) fn check_step(writes: &[Write]) -> Result<()> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, "apply", message));
    let mut keys = BTreeSet::new();
    for write in writes {
        check_keys("apply", std::slice::from_ref(&write.key))?;
        if !keys.insert(write.key.as_str()) {
            return invalid(format!("the step contains the key {} twice", write.key));
        }
        if let Op::Put { value, .. } = &write.op
            && value.len() > MAX_VALUE_BYTES
        {
            let bytes = value.len();
            let message = format!(
                "the value of {} has {bytes} bytes; at most {MAX_VALUE_BYTES} are allowed",
                write.key
            );
            return invalid(message);
        }
    }
    Ok(())
}
