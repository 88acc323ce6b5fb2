//! Prompt tokens the server found in its cache.

use crate::Measured;
use serde::Serialize;

/// Sums over the successful requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheReport {
    /// Prompt tokens: the server's counts, the dataset's where it gave none.
    pub prompt_tokens: u64,
    /// Prompt tokens that were cached.
    pub cached_tokens: u64,
    /// Where they were found; `None` when no reply told.
    pub places: Option<CachePlaces>,
}

/// Where cached tokens were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CachePlaces {
    /// In device memory.
    pub device: u64,
    /// In host memory.
    pub host: u64,
    /// In external storage.
    pub storage: u64,
    /// Name of that storage.
    pub storage_backend: Option<String>,
}

impl CacheReport {
    /// `cached / prompt · 100`; zero without prompt tokens.
    pub fn hit_rate_percent(&self) -> f64 {
        if self.prompt_tokens == 0 {
            return 0.0;
        }
        self.cached_tokens as f64 / self.prompt_tokens as f64 * 100.0
    }

    pub(crate) fn add(&mut self, request: &Measured<'_>) {
        let reply = &request.record.reply;
        let places = reply.rare().cached_details.as_ref().map(|details| CachePlaces {
            device: details.device,
            host: details.host,
            storage: details.storage.unwrap_or(0),
            storage_backend: details.storage_backend.clone(),
        });
        self.merge(Self {
            prompt_tokens: request.prompt_tokens(),
            cached_tokens: reply.cached_tokens.unwrap_or(0),
            places,
        });
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        if let Some(more) = other.places {
            let sum = self.places.get_or_insert_default();
            sum.device = sum.device.saturating_add(more.device);
            sum.host = sum.host.saturating_add(more.host);
            sum.storage = sum.storage.saturating_add(more.storage);
            // One run has one storage; the larger name makes the result independent of order.
            sum.storage_backend = sum.storage_backend.take().max(more.storage_backend);
        }
    }
}
