//! How a run is told to end early.

use tokio::sync::watch;

/// How far a run may still go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    #[default]
    Go,
    Drain,
    Abort,
}

/// Ends a run early: first no new requests, then those under way are cut off. Clones act together.
#[derive(Clone, Debug)]
pub struct Stop {
    order: watch::Sender<Order>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { order: watch::Sender::new(Order::Go) }
    }
}

impl Stop {
    /// Sends no further request; those under way may finish.
    pub fn drain(&self) {
        self.raise(Order::Drain);
    }

    /// Cuts off the requests under way; what they got so far is kept.
    pub fn abort(&self) {
        self.raise(Order::Abort);
    }

    /// True once the run was told to end early.
    pub fn is_ordered(&self) -> bool {
        *self.order.borrow() > Order::Go
    }

    fn raise(&self, to: Order) {
        self.order.send_if_modified(|order| {
            let raised = *order < to;
            *order = (*order).max(to);
            raised
        });
    }

    pub(crate) async fn drained(&self) {
        self.reached(Order::Drain).await;
    }

    pub(crate) async fn aborted(&self) {
        self.reached(Order::Abort).await;
    }

    async fn reached(&self, order: Order) {
        // The sender lives in `self`, so waiting cannot fail.
        drop(self.order.subscribe().wait_for(|now| *now >= order).await);
    }
}
