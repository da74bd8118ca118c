//! The part of a listing that a request asks for, by the parameters of the OpenAI API.

use lkr::ListOrder;

/// A page, by its size, its order and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRequest<K> {
    pub(crate) limit: usize,
    pub(crate) order: ListOrder,
    pub(crate) start: PageStart<K>,
}

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageStart<K> {
    /// At the start of the listing.
    First,
    /// After this object.
    After(K),
    /// Before this object.
    Before(K),
}

impl<K> PageRequest<K> {
    /// The order in which objects are read, and the object after which reading begins. The objects before another are those
    /// after it in the other order.
    pub(crate) fn reading(&self) -> (ListOrder, Option<&K>) {
        match &self.start {
            PageStart::First => (self.order, None),
            PageStart::After(key) => (self.order, Some(key)),
            PageStart::Before(key) => (self.order.reversed(), Some(key)),
        }
    }

    /// Puts objects, in the order in which they were read, into the order of the listing.
    pub(crate) fn arrange<T>(&self, mut objects: Vec<T>) -> Vec<T> {
        if matches!(self.start, PageStart::Before(_)) {
            objects.reverse();
        }
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_before_an_object_is_read_backwards() {
        let page = |start| PageRequest { limit: 2, order: ListOrder::NewestFirst, start };
        assert_eq!(page(PageStart::First).reading(), (ListOrder::NewestFirst, None));
        assert_eq!(page(PageStart::After(7)).reading(), (ListOrder::NewestFirst, Some(&7)));
        let before = page(PageStart::Before(7));
        assert_eq!(before.reading(), (ListOrder::OldestFirst, Some(&7)));
        assert_eq!(before.arrange(vec![8, 9]), [9, 8]);
        assert_eq!(page(PageStart::After(7)).arrange(vec![6, 5]), [6, 5]);
    }
}
