//! Several servers as one: which of them a request goes to.

use servebench_core::{Backend, Failure, FailureKind, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// How requests are dealt to several servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// One after the other, by the request's place in the plan, whoever sends it.
    #[default]
    RoundRobin,
    /// To the server with the fewest requests under way, all workers counted; of several, the one whose
    /// turn it is.
    LeastInFlight,
}

/// Deals the requests of one run. Shared by its workers.
///
/// The turns of a conversation go where the first went: its server has them in the cache.
#[derive(Debug)]
pub struct Balancer {
    policy: Balance,
    in_flight: Box<[AtomicUsize]>,
    /// The ids at which the plan's requests begin, where they have several turns; else ids are places.
    begins: Box<[u64]>,
    /// For each of them the server it went to and one more; 0 before it was sent.
    homes: Box<[AtomicU32]>,
}

impl Balancer {
    /// Deals `requests`, in the order of the plan, to `servers` servers (0 counts as 1).
    pub fn new(policy: Balance, servers: usize, requests: &[Request]) -> Self {
        let turns = requests.iter().any(|request| request.turns() > 1);
        let begins: Box<[u64]> =
            requests.iter().filter(|_| turns).map(|request| request.id).collect();
        Self {
            policy,
            in_flight: (0..servers.max(1)).map(|_| AtomicUsize::new(0)).collect(),
            homes: begins.iter().map(|_| AtomicU32::new(0)).collect(),
            begins,
        }
    }

    /// The place in the plan of the request with this id.
    fn place(&self, id: u64) -> usize {
        if self.begins.is_empty() {
            return usize::try_from(id).unwrap_or(usize::MAX);
        }
        self.begins.partition_point(|begin| *begin <= id).saturating_sub(1)
    }

    /// The server for the request with this id.
    fn choose(&self, id: u64) -> usize {
        let place = self.place(id);
        let turn = place % self.in_flight.len();
        if self.policy == Balance::RoundRobin {
            return turn;
        }
        let home = self.homes.get(place);
        if let Some(known) = home.and_then(|home| home.load(Relaxed).checked_sub(1)) {
            return known as usize;
        }
        let servers = self.in_flight.len();
        let from_turn = (0..servers).map(|step| (turn + step) % servers);
        let least = from_turn.min_by_key(|server| self.in_flight[*server].load(Relaxed));
        let chosen = least.unwrap_or(turn);
        if let Some(home) = home {
            home.store(chosen as u32 + 1, Relaxed);
        }
        chosen
    }
}

/// Counts a request while it is under way, however it ends.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// One worker's backends, one for each server, as one backend. Of several, each reply notes which one it
/// came from ([`Rare::target`](servebench_core::Rare::target)).
#[derive(Debug)]
pub struct Balanced<B> {
    backends: Vec<B>,
    balancer: Arc<Balancer>,
}

impl<B> Balanced<B> {
    /// Sends through `backends`, as many as the balancer has servers.
    pub fn new(backends: Vec<B>, balancer: Arc<Balancer>) -> Self {
        Self { backends, balancer }
    }
}

impl<B: Backend> Backend for Balanced<B> {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        if let [only] = self.backends.as_slice() {
            return only.send(request, reply).await;
        }
        let chosen = self.balancer.choose(request.id);
        let Some(backend) = self.backends.get(chosen) else {
            return reply.fail(Failure::new(FailureKind::Connect, "there is no server to send to"));
        };
        let _under_way = UnderWay::new(&self.balancer.in_flight[chosen]);
        reply.rare_mut().target = Some(chosen as u32);
        backend.send(request, reply).await;
    }

    async fn warm(&self, concurrency: usize) {
        let share = concurrency.div_ceil(self.backends.len().max(1));
        for backend in &self.backends {
            backend.warm(share).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::Conversation;

    fn plan(turns: &[usize]) -> Vec<Request> {
        let mut id = 0;
        let request = |turns: &usize| {
            let conversation = (*turns > 1).then(|| {
                let turns = vec![bytes::Bytes::new(); *turns];
                Arc::new(Conversation { turns, ..Conversation::default() })
            });
            let request = Request { id, conversation, ..Request::default() };
            id += *turns as u64;
            request
        };
        turns.iter().map(request).collect()
    }

    #[test]
    fn round_robin_goes_by_the_place_in_the_plan() {
        let balancer = Balancer::new(Balance::RoundRobin, 3, &plan(&[1; 7]));
        let chosen: Vec<usize> = (0..7).map(|id| balancer.choose(id)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(balancer.choose(4), 1, "whoever asks, and when");
    }

    #[test]
    fn a_conversation_stays_where_it_began() {
        for policy in [Balance::RoundRobin, Balance::LeastInFlight] {
            let balancer = Balancer::new(policy, 2, &plan(&[2, 2, 4, 1]));
            let chosen: Vec<usize> = (0..9).map(|id| balancer.choose(id)).collect();
            assert_eq!(chosen, [0, 0, 1, 1, 0, 0, 0, 0, 1], "{policy:?}");
        }
    }

    proptest::proptest! {
        /// Round robin deals the plan's requests evenly, and keeps the turns of each together.
        #[test]
        fn shares_differ_by_one_at_most(
            turns in proptest::collection::vec(1usize..5, 1..40),
            servers in 1usize..6,
        ) {
            let requests = plan(&turns);
            let balancer = Balancer::new(Balance::RoundRobin, servers, &requests);
            let mut shares = vec![0; servers];
            for request in &requests {
                let home = balancer.choose(request.id);
                shares[home] += 1;
                let later = request.id..request.id + request.turns() as u64;
                proptest::prop_assert!(later.into_iter().all(|id| balancer.choose(id) == home));
            }
            proptest::prop_assert!(shares.iter().max() <= shares.iter().min().map(|n| n + 1).as_ref());
        }
    }

    #[test]
    fn the_least_busy_server_is_next() {
        let balancer = Balancer::new(Balance::LeastInFlight, 3, &plan(&[1; 9]));
        let slow = UnderWay::new(&balancer.in_flight[0]);
        let slower = UnderWay::new(&balancer.in_flight[1]);
        assert_eq!([balancer.choose(0), balancer.choose(1), balancer.choose(2)], [2, 2, 2]);
        drop(slow);
        assert_eq!([balancer.choose(3), balancer.choose(4)], [0, 2], "of two, whose turn it is");
        drop(slower);
        assert_eq!([balancer.choose(3), balancer.choose(4), balancer.choose(5)], [0, 1, 2]);
    }
}
