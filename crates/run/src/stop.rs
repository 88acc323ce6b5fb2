//! How a run is told to end early.

use crate::EndedBy;
use tokio::sync::watch;

/// How far a run may still go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    #[default]
    Go,
    Drain,
    Abort,
}

/// The order in force, and who gave it.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    order: Order,
    by: Option<EndedBy>,
}

/// Ends a run early: first no new requests, then those under way are cut off. Clones act together.
#[derive(Clone, Debug)]
pub struct Stop {
    state: watch::Sender<State>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { state: watch::Sender::new(State::default()) }
    }
}

impl Stop {
    /// Sends no further request; those under way may finish.
    pub fn drain(&self) {
        self.drain_for(EndedBy::Interrupt);
    }

    /// Cuts off the requests under way; what they got so far is kept.
    pub fn abort(&self) {
        self.abort_for(EndedBy::Interrupt);
    }

    pub(crate) fn drain_for(&self, by: EndedBy) {
        self.raise(Order::Drain, by);
    }

    pub(crate) fn abort_for(&self, by: EndedBy) {
        self.raise(Order::Abort, by);
    }

    /// True once the run was told to end early.
    pub fn is_ordered(&self) -> bool {
        self.state.borrow().order > Order::Go
    }

    /// Who gave the order in force, if there is one.
    pub fn ordered_by(&self) -> Option<EndedBy> {
        self.state.borrow().by
    }

    fn raise(&self, to: Order, by: EndedBy) {
        self.state.send_if_modified(|state| {
            let raised = state.order < to;
            if raised {
                *state = State { order: to, by: Some(by) };
            }
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
        drop(self.state.subscribe().wait_for(|now| now.order >= order).await);
    }
}
