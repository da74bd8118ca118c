//! What a correct service would hold of a source, and what each event makes of it.

use super::{Shown, events::Effect};

/// The documents of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct State<'a> {
    live: Option<Live<'a>>,
    /// What was accepted and not published, in this order.
    accepted: Vec<Accepted<'a>>,
    /// The documents that were deleted.
    gone: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Live<'a> {
    doc: &'a str,
    text: u64,
    title: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Accepted<'a> {
    doc: &'a str,
    write: u64,
    /// The title that the document gets: that of the write, or one that was set after the acceptance.
    title: u64,
}

impl<'a> State<'a> {
    /// The state after an event, if it can take effect now.
    pub(crate) fn after(&self, effect: Effect<'a>) -> Option<Self> {
        match effect {
            Effect::Accept { doc, write } => self.accept(doc, write),
            Effect::Publish { write } => self.publish(write),
            Effect::Retitle { doc, write } => self.retitle(doc, write),
            Effect::Delete { doc } => Some(self.delete(doc)),
            Effect::Missing { .. } | Effect::Get { .. } | Effect::Find { .. } => {
                self.shows(effect).then(|| self.clone())
            }
        }
    }

    /// Whether a read could show this now. Writes show nothing.
    pub(crate) fn shows(&self, effect: Effect<'_>) -> bool {
        match effect {
            Effect::Missing { doc } | Effect::Get { doc, found: None } => !self.is_live(doc),
            Effect::Get { found: Some(found), .. } | Effect::Find { found: Some(found) } => self.is(found),
            Effect::Find { found: None } => self.live.is_none(),
            _ => false,
        }
    }

    fn is_live(&self, doc: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.doc == doc)
    }

    fn is(&self, shown: &Shown) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.doc == shown.doc
                && shown.text.is_none_or(|text| text == live.text)
                && shown.title.is_none_or(|title| title == live.title)
        })
    }

    /// An upsert goes to the document that is live, or else that was accepted, or else to a new one.
    fn accept(&self, doc: &'a str, write: u64) -> Option<Self> {
        let present =
            self.live.as_ref().map(|live| live.doc).or_else(|| self.accepted.last().map(|last| last.doc));
        let is_right = present.map_or_else(|| !self.gone.contains(&doc), |present| present == doc);
        is_right.then(|| {
            let mut after = self.clone();
            after.accepted.push(Accepted { doc, write, title: write });
            after
        })
    }

    /// Of two, the one that was accepted last stays, so the earlier ones are never published after it.
    fn publish(&self, write: u64) -> Option<Self> {
        let place = self.accepted.iter().position(|accepted| accepted.write == write)?;
        let mut after = self.clone();
        let Accepted { doc, write, title } = after.accepted.drain(..=place).next_back()?;
        after.live = Some(Live { doc, text: write, title });
        Some(after)
    }

    /// A title that is set stays when a replacement is published that was accepted before.
    fn retitle(&self, doc: &str, write: u64) -> Option<Self> {
        let mut after = self.clone();
        after.live.as_mut().filter(|live| live.doc == doc)?.title = write;
        after.accepted.iter_mut().filter(|accepted| accepted.doc == doc).for_each(|a| a.title = write);
        Some(after)
    }

    fn delete(&self, doc: &'a str) -> Self {
        let mut after = self.clone();
        after.live = after.live.filter(|live| live.doc != doc);
        after.accepted.retain(|accepted| accepted.doc != doc);
        if !after.gone.contains(&doc) {
            after.gone.push(doc);
            after.gone.sort_unstable();
        }
        after
    }
}
