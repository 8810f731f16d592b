//! News between nodes: `NOTIFY` after the commit, on a connection of its own, and `LISTEN` on another.

use super::{
    super::{Hub, tls::Address},
    connection::Connection,
};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use postgres::fallible_iterator::FallibleIterator;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Most bytes of a notification; PostgreSQL takes less than 8,000.
const PAYLOAD: usize = 7_000;
/// How often a thread looks whether the store is closing.
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct News {
    hub: Hub,
    channel: Mutex<String>,
    out: Mutex<Option<Sender<Vec<String>>>>,
    waiting: Receiver<Vec<String>>,
    closed: AtomicBool,
}

impl News {
    pub(super) fn new(hub: Hub) -> Self {
        let (out, waiting) = unbounded();
        Self {
            hub,
            channel: Mutex::default(),
            out: Mutex::new(Some(out)),
            waiting,
            closed: AtomicBool::new(false),
        }
    }

    /// A database may hold several stores, each in a schema of its own.
    pub(super) fn set_channel(&self, schema: &str) {
        *self.channel.lock() = format!("purvey_{schema}");
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.out.lock() = None;
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes who waits on this node, and lets the other nodes know.
    pub(super) fn publish(&self, topics: Vec<String>) {
        topics.iter().for_each(|topic| self.hub.publish(topic));
        if let Some(out) = &*self.out.lock()
            && !topics.is_empty()
        {
            // What is not sent is found by polling.
            let _ = out.send(topics);
        }
    }

    /// The life of the thread that tells other nodes.
    pub(super) fn tell(&self, address: &Address) {
        let channel = self.channel.lock().clone();
        let mut connection = None;
        while let Ok(mut topics) = self.waiting.recv() {
            topics.extend(self.waiting.try_iter().take(1_000).flatten());
            topics.sort_unstable();
            topics.dedup();
            for payload in payloads(&topics) {
                let open = match connection.take() {
                    Some(open) => Ok(open),
                    None => Connection::open(address),
                };
                // Other nodes find by polling what they are not told.
                connection = open
                    .ok()
                    .and_then(|mut open| open.notify(&channel, &payload).is_ok().then_some(open));
            }
        }
    }

    /// The life of the thread that hears from other nodes.
    pub(super) fn listen(&self, address: &Address) {
        let channel = self.channel.lock().clone();
        let mut pause = Duration::from_millis(50);
        while !self.is_closed() {
            match Connection::open(address) {
                Ok(mut connection) => {
                    pause = Duration::from_millis(50);
                    if let Err(error) = self.hear(&mut connection, &channel) {
                        tracing::warn!(%error, "news from other nodes is interrupted");
                    }
                }
                Err(error) => tracing::warn!(error, "news from other nodes is interrupted"),
            }
            // In steps, so that a store that closes does not wait for it.
            let mut left = pause;
            while !left.is_zero() && !self.is_closed() {
                let step = left.min(LOOK);
                std::thread::sleep(step);
                left -= step;
            }
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    fn hear(&self, connection: &mut Connection, channel: &str) -> Result<(), postgres::Error> {
        let client = connection.client();
        client.batch_execute(&format!("LISTEN \"{}\"", channel.replace('"', "\"\"")))?;
        // What was told before this moment may have been missed.
        self.hub.publish_all();
        while !self.is_closed() {
            if let Some(notification) = client.notifications().timeout_iter(LOOK).next()? {
                notification
                    .payload()
                    .split(' ')
                    .for_each(|topic| self.hub.publish(topic));
            }
            client.check_connection()?;
        }
        Ok(())
    }
}

/// Topics, separated by spaces, in as few notifications as hold them.
fn payloads(topics: &[String]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for topic in topics {
        match payloads.last_mut() {
            Some(last) if last.len() + topic.len() < PAYLOAD => {
                last.push(' ');
                last.push_str(topic);
            }
            _ => payloads.push(topic.clone()),
        }
    }
    payloads
}
