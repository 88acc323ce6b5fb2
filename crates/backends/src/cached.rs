//! Cached prompt tokens and where they were found, as SGLang details them.

use crate::json::field::{Count, Text, record};
use servebench_core::{CachedDetails, Reply};

record! {
    /// The parts of a cached prompt.
    CachedParts<'a> {
        "device" => device: Count,
        "host" => host: Count,
        "storage" => storage: Count,
        "storage_backend" => storage_backend: Text<'a>,
    }
}

impl CachedParts<'_> {
    /// True when there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.device.0.or(self.host.0).or(self.storage.0).is_none()
    }

    /// Notes the parts in `reply`, if there are any, and returns their sum.
    pub(crate) fn note(&self, reply: &mut Reply) -> Option<u64> {
        let (device, host, storage) = (self.device.0, self.host.0, self.storage.0);
        device.or(host).or(storage)?;
        let count = |part: Option<u32>| u64::from(part.unwrap_or(0));
        reply.rare_mut().cached_details = Some(CachedDetails {
            device: count(device),
            host: count(host),
            storage: storage.map(u64::from),
            storage_backend: (!self.storage_backend.is_empty())
                .then(|| self.storage_backend.0.clone().into_owned()),
        });
        Some(count(device) + count(host) + count(storage))
    }
}
