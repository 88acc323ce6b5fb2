//! The prefix cache: blocks of prompt tokens found again by hash, evicted oldest first.

use std::collections::{BTreeMap, HashMap};

#[derive(Debug)]
struct Block {
    /// Running requests that use it.
    users: u32,
    /// Its key in `idle`, when it has no users.
    idle_since: u64,
}

/// Not a key of `idle`: its clock starts above.
const NEVER: u64 = 0;

/// Blocks in the cache, with and without users.
#[derive(Debug, Default)]
pub(super) struct PrefixCache {
    blocks: HashMap<u64, Block>,
    /// Blocks without users by the time of their last use: the order of eviction.
    idle: BTreeMap<u64, u64>,
    clock: u64,
}

impl PrefixCache {
    /// Number of blocks.
    pub(super) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Number of blocks with users.
    pub(super) fn used(&self) -> u64 {
        (self.blocks.len() - self.idle.len()) as u64
    }

    /// How many of `hashes` are cached from the first one on, and how many of those have no users.
    pub(super) fn lookup(&self, hashes: &[u64]) -> (usize, u64) {
        let found = hashes.iter().map_while(|hash| self.blocks.get(hash));
        found.fold((0, 0), |(hits, idle), block| (hits + 1, idle + u64::from(block.users == 0)))
    }

    /// Adds a user to the block, which is made where it is missing.
    pub(super) fn acquire(&mut self, hash: u64) {
        let block = self.blocks.entry(hash).or_insert(Block { users: 0, idle_since: NEVER });
        block.users += 1;
        if block.users == 1 {
            self.idle.remove(&block.idle_since);
        }
    }

    /// Takes a user from each block, in such an order that the end of a prefix is evicted first.
    pub(super) fn release(&mut self, hashes: &[u64]) {
        for hash in hashes.iter().rev() {
            if let Some(block) = self.blocks.get_mut(hash) {
                block.users = block.users.saturating_sub(1);
                if block.users == 0 {
                    self.clock += 1;
                    block.idle_since = self.clock;
                    self.idle.insert(self.clock, *hash);
                }
            }
        }
    }

    /// Evicts blocks without users until at most `limit` blocks are left.
    pub(super) fn shrink(&mut self, limit: u64) {
        while self.len() > limit {
            let Some((_, hash)) = self.idle.pop_first() else { return };
            self.blocks.remove(&hash);
        }
    }
}
