//! The body of a profiler start.

use serde::{Serialize, Serializer};

/// What to profile: every field of SGLang's `/start_profile`, in the types of its schema.
///
/// What is left at its default goes out as `null` or not at all, which servers take as their own
/// default. vLLM's endpoint takes no fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProfileRequest {
    /// `CPU`, `GPU`, `CUDA_PROFILER`, `XPU`, `MEM`, `RPD` or what a platform adds; empty: the
    /// server's choice (CPU and GPU).
    #[serde(serialize_with = "null_if_empty")]
    pub activities: Vec<String>,
    /// Forward steps after which the server stops by itself.
    pub num_steps: Option<u64>,
    /// Capture prefill and decode apart. Needs [`num_steps`](Self::num_steps): SGLang's scheduler
    /// does not survive without.
    pub profile_by_stage: bool,
    /// The stages to capture (`prefill`, `decode`), if not all.
    pub profile_stages: Option<Vec<String>>,
    /// Folder for the traces, on the server's machine.
    pub output_dir: Option<String>,
    /// Put before the trace files' names.
    pub profile_prefix: Option<String>,
    /// The server's forward step (an absolute count) at which to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_step: Option<u64>,
    /// Record Python call stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_stack: Option<bool>,
    /// Record the shapes of operators' inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_shapes: Option<bool>,
    /// First part of the trace files' names; the server's clock if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<String>,
    /// Merge the traces of all ranks into one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_profiles: Option<bool>,
    /// Add request and KV-length aggregates to the `step[...]` spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_annotations: Option<bool>,
}

/// An empty list would profile nothing.
fn null_if_empty<S: Serializer>(activities: &[String], to: S) -> Result<S::Ok, S::Error> {
    if activities.is_empty() { to.serialize_none() } else { activities.serialize(to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_left_to_the_server() {
        let body = serde_json::to_value(ProfileRequest::default()).expect("JSON");
        let want = json!({"activities": null, "num_steps": null, "profile_by_stage": false,
            "profile_stages": null, "output_dir": null, "profile_prefix": null});
        assert_eq!(body, want);
    }

    #[test]
    fn every_field_has_the_type_of_the_schema() {
        let text = |text: &str| Some(text.to_owned());
        let request = ProfileRequest {
            activities: vec!["CPU".into(), "MEM".into()],
            num_steps: Some(10),
            profile_by_stage: true,
            profile_stages: Some(vec!["decode".into()]),
            output_dir: text("/tmp/profiles"),
            profile_prefix: text("run"),
            start_step: Some(3),
            with_stack: Some(false),
            record_shapes: Some(true),
            profile_id: text("7"),
            merge_profiles: Some(true),
            detailed_annotations: Some(true),
        };
        let want = json!({"activities": ["CPU", "MEM"], "num_steps": 10, "profile_by_stage": true,
            "profile_stages": ["decode"], "output_dir": "/tmp/profiles", "profile_prefix": "run",
            "start_step": 3, "with_stack": false, "record_shapes": true, "profile_id": "7",
            "merge_profiles": true, "detailed_annotations": true});
        assert_eq!(serde_json::to_value(request).expect("JSON"), want);
    }
}
