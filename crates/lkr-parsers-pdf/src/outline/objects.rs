/// The number and generation of an object.
pub(crate) type Id = (u32, u16);

/// An object as far as outlines need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Other,
    Number(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    Array(Vec<Self>),
    Dictionary(Vec<(Vec<u8>, Self)>),
    Reference(Id),
}

impl Value {
    /// The value of `key` without resolving references.
    pub(crate) fn entry(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dictionary(entries) => {
                entries.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The object to which the value of `key` refers.
    pub(crate) fn reference(&self, key: &str) -> Option<Id> {
        match self.entry(key) {
            Some(Self::Reference(id)) => Some(*id),
            _ => None,
        }
    }

    /// The bytes of a string or name.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) | Self::Name(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The items of an array.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The value as a number.
    #[expect(clippy::cast_possible_truncation, reason = "points need no more")]
    pub(crate) fn number(&self) -> Option<f32> {
        match self {
            Self::Number(number) => Some(*number as f32).filter(|number| number.is_finite()),
            _ => None,
        }
    }
}

/// The objects of a document.
pub(crate) trait Objects {
    /// The object with this number.
    fn object(&self, id: Id) -> Option<Value>;

    /// The document's catalog.
    fn catalog(&self) -> Option<Value>;

    /// `value`, or the object to which it refers.
    fn resolve(&self, value: &Value) -> Option<Value> {
        let mut value = value.clone();
        for _ in 0..4 {
            match value {
                Value::Reference(id) => value = self.object(id)?,
                value => return Some(value),
            }
        }
        None
    }

    /// The value of `key` with references resolved.
    fn get(&self, value: &Value, key: &str) -> Option<Value> {
        self.resolve(value.entry(key)?)
    }
}
