//! The files that a profile leaves, where they can be seen.

use serde_json::Value;
use servebench_control::ProfileRequest;
use std::path::{Path, PathBuf};

/// A file that the server's profiler wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

impl TraceFile {
    /// Whether it is of the decode stage alone.
    pub(crate) fn is_decode(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.to_ascii_lowercase().contains("-decode.")
    }
}

/// Endings of the files that profilers write.
const ENDINGS: [&str; 4] = [".trace.json.gz", ".trace.json", ".pickle", ".json.gz"];

/// The trace files in `folder`, by name; none where there is no such folder.
pub(crate) fn in_folder(folder: &Path) -> Vec<TraceFile> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        let known = ENDINGS.iter().any(|ending| name.ends_with(ending));
        let bytes = known.then(|| entry.metadata().ok()).flatten()?.len();
        Some(TraceFile { path: entry.path(), bytes })
    };
    let mut files: Vec<_> = entries.flatten().filter_map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// How many files a server writes for `request`, by its own report; those on other nodes cannot be
/// seen and are not counted.
pub(crate) fn expected(request: &ProfileRequest, info: Option<&Value>) -> usize {
    let size = |key: &str| {
        let size = info.and_then(|info| info.get(key)?.as_u64()).unwrap_or(1);
        usize::try_from(size).unwrap_or(1).clamp(1, 4096)
    };
    let flag = |key: &str| info.and_then(|info| info.get(key)?.as_bool()).unwrap_or(false);
    // With attention in parallel over data, the ranks of both are the same processes.
    let copies = if flag("enable_dp_attention") { 1 } else { size("dp_size") };
    let ranks = (size("tp_size") * size("pp_size") * copies / size("nnodes")).max(1);
    let stages = match (&request.profile_stages, request.profile_by_stage) {
        (_, false) => 1,
        (Some(stages), true) => stages.len().max(1),
        (None, true) => 2,
    };
    let has = |names: &[&str]| request.activities.iter().any(|name| names.contains(&name.as_str()));
    // An empty list is the server's choice, which is CPU and GPU.
    let kernels = request.activities.is_empty() || has(&["CPU", "GPU", "XPU"]);
    let kinds = usize::from(kernels) + usize::from(has(&["MEM"])) + usize::from(has(&["RPD"]));
    let merged = request.merge_profiles == Some(true) && request.profile_prefix.is_none();
    ranks * stages * kinds + usize::from(merged && kernels)
}

/// Bytes as people read them.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn as_many_files_as_ranks_stages_and_kinds() {
        let plain = ProfileRequest::default();
        assert_eq!(expected(&plain, None), 1);
        let info = json!({"tp_size": 4, "dp_size": 2, "pp_size": 1, "nnodes": 2});
        assert_eq!(expected(&plain, Some(&info)), 4);
        let attention = json!({"tp_size": 8, "dp_size": 8, "enable_dp_attention": true});
        assert_eq!(expected(&plain, Some(&attention)), 8);
        let stages = ProfileRequest {
            profile_by_stage: true,
            activities: names(&["CPU", "GPU", "MEM"]),
            ..ProfileRequest::default()
        };
        assert_eq!(expected(&stages, None), 4);
        let merged = ProfileRequest { merge_profiles: Some(true), ..ProfileRequest::default() };
        assert_eq!(expected(&merged, None), 2);
        let prefix = ProfileRequest { profile_prefix: Some("a".into()), ..merged };
        assert_eq!(expected(&prefix, None), 1, "a prefix defeats the server's merge");
        let nsys =
            ProfileRequest { activities: names(&["CUDA_PROFILER"]), ..ProfileRequest::default() };
        assert_eq!(expected(&nsys, None), 0);
    }

    #[test]
    fn only_the_profilers_own_files_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b-TP-1.trace.json.gz", "a-TP-0.trace.json.gz", "server_args.json", "x.txt"] {
            std::fs::write(folder.path().join(name), "12345").expect("a file");
        }
        let found = in_folder(folder.path());
        let ends: Vec<_> = found.iter().filter_map(|file| file.path.file_name()).collect();
        assert_eq!(ends, ["a-TP-0.trace.json.gz", "b-TP-1.trace.json.gz"]);
        assert_eq!(found[0].bytes, 5);
        let decode = |name: &str| TraceFile { path: name.into(), bytes: 1 }.is_decode();
        assert!(decode("x/7-TP-0-DECODE.trace.json.gz") && decode("7-TP-0-decode.trace.json.gz"));
        assert!(!decode("x-DECODE.d/7-TP-0-EXTEND.trace.json.gz"));
        assert!(in_folder(&folder.path().join("none")).is_empty());
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 999, 1_500, 12_345_678, 3_000_000_000].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.5 kB", "12.3 MB", "3.0 GB"]);
    }

    proptest! {
        #[test]
        fn any_report_gives_a_number(text in "[\\[\\]{}:,\"a-z_0-9.]{0,60}") {
            if let Ok(info) = serde_json::from_str::<Value>(&text) {
                prop_assert!(expected(&ProfileRequest::default(), Some(&info)) >= 1);
            }
        }
    }
}
