//! Waiting for news: what a transaction notified once it was durable.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::watch;

/// How soon news is found that no notification brought, because it was lost on the way between nodes.
const POLL: Duration = Duration::from_secs(1);

/// Who waits for which topic. Clones share their waiters.
#[derive(Clone, Debug)]
pub struct Hub {
    topics: Arc<Mutex<HashMap<String, watch::Sender<()>>>>,
    poll: Option<Duration>,
}

/// A wait for one topic. News from its making on is not missed, whenever it is asked for.
#[derive(Debug)]
pub struct Watch {
    hub: Hub,
    topic: String,
    news: watch::Receiver<()>,
}

impl Hub {
    /// For a store with one process: every notification arrives.
    pub(super) fn local() -> Self {
        Self {
            topics: Arc::default(),
            poll: None,
        }
    }

    /// For a store with several nodes.
    pub(super) fn shared() -> Self {
        Self {
            topics: Arc::default(),
            poll: Some(POLL),
        }
    }

    /// Begins to wait for news of `topic`: the identifier of what changes.
    #[must_use]
    pub fn watch(&self, topic: &str) -> Watch {
        let mut topics = self.topics.lock();
        let news = match topics.get(topic) {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = watch::channel(());
                topics.insert(topic.to_owned(), sender);
                receiver
            }
        };
        Watch {
            hub: self.clone(),
            topic: topic.to_owned(),
            news,
        }
    }

    /// Wakes who waits for `topic`.
    pub(super) fn publish(&self, topic: &str) {
        if let Some(sender) = self.topics.lock().get(topic) {
            sender.send_replace(());
        }
    }

    /// Wakes everyone: notifications may have been lost.
    pub(super) fn publish_all(&self) {
        for sender in self.topics.lock().values() {
            sender.send_replace(());
        }
    }

    /// How many topics are waited for.
    #[cfg(test)]
    pub(super) fn topics(&self) -> usize {
        self.topics.lock().len()
    }
}

impl Watch {
    /// Returns when there may be news since the last call. On a store that several nodes share it returns at least every second.
    pub async fn changed(&mut self) {
        let news = self.news.changed();
        match self.hub.poll {
            // Either way it is time to look.
            Some(poll) => drop(tokio::time::timeout(poll, news).await),
            None => drop(news.await),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut topics = self.hub.topics.lock();
        if topics
            .get(&self.topic)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            topics.remove(&self.topic);
        }
    }
}
