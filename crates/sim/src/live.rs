//! A configuration in force, with what is derived from it. Replaced as a whole when it changes.

use crate::engine::{CostModel, Timeline};
use crate::faults::ArmedRule;
use crate::random;
use crate::text::Pieces;
use crate::{SimConfig, Timing};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) config: SimConfig,
    pub(crate) pieces: Pieces,
    /// The model's name as a JSON string.
    pub(crate) model_json: String,
    /// The engine, unless timing is canned.
    pub(crate) timeline: Option<Arc<Mutex<Timeline>>>,
    pub(crate) rules: Arc<Vec<ArmedRule>>,
    /// The one embedding, of unit length.
    pub(crate) embedding: Vec<f32>,
}

impl Live {
    pub(crate) fn new(config: SimConfig) -> Self {
        let timeline = match &config.timing {
            Timing::Canned { .. } => None,
            Timing::Engine(cost) => Some(Arc::new(Mutex::new(Timeline::new(cost.clone())))),
        };
        let rules = config.faults.iter().cloned().map(ArmedRule::new).collect();
        Self::assemble(config, timeline, Arc::new(rules))
    }

    /// The same server under a changed configuration: the engine keeps its state unless its model
    /// changed, the fault rules their counts unless they changed.
    pub(crate) fn changed(&self, config: SimConfig) -> Self {
        let mut next = Self::new(config);
        if next.config.timing == self.config.timing {
            next.timeline.clone_from(&self.timeline);
        }
        if next.config.faults == self.config.faults {
            next.rules = Arc::clone(&self.rules);
        }
        next
    }

    fn assemble(
        config: SimConfig,
        timeline: Option<Arc<Mutex<Timeline>>>,
        rules: Arc<Vec<ArmedRule>>,
    ) -> Self {
        Self {
            pieces: Pieces::new(config.text),
            model_json: serde_json::Value::from(config.model.as_str()).to_string(),
            embedding: embedding(config.seed, config.embedding_dim),
            timeline,
            rules,
            config,
        }
    }

    pub(crate) fn cost(&self) -> Option<&CostModel> {
        match &self.config.timing {
            Timing::Canned { .. } => None,
            Timing::Engine(cost) => Some(cost),
        }
    }
}

fn embedding(seed: u64, dimensions: u32) -> Vec<f32> {
    let raw: Vec<f64> = (0..u64::from(dimensions))
        .map(|place| random::unit(seed, u64::MAX, place) * 2.0 - 1.0)
        .collect();
    let norm = raw.iter().map(|value| value * value).sum::<f64>().sqrt();
    raw.iter().map(|value| if norm > 0.0 { (value / norm) as f32 } else { 0.0 }).collect()
}
