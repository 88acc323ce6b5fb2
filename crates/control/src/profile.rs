//! The body of a profiler start.

use serde::Serialize;

/// What to profile. Fields that are `None` go out as `null`, which servers take as their default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProfileRequest {
    /// `CPU`, `GPU`, `CUDA_PROFILER`, `XPU`, `MEM`.
    pub activities: Vec<String>,
    /// Forward steps after which the server stops by itself.
    pub num_steps: Option<u64>,
    /// Capture prefill and decode apart.
    pub profile_by_stage: bool,
    /// The stages to capture, if not all.
    pub profile_stages: Option<Vec<String>>,
    /// Folder for the traces, on the server's machine.
    pub output_dir: Option<String>,
    /// Put before the trace files' names.
    pub profile_prefix: Option<String>,
    /// The server's forward step (an absolute count) at which to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_step: Option<u64>,
}
