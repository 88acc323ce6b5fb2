//! Result files.

use super::VllmInfo;
use crate::{ReportError, append_line, python_float};
use std::fs;
use std::path::Path;

/// The default name of a result file:
/// `{label or backend}-{rate}qps[-concurrency{cap}]-{model}-{date}.json`.
///
/// Characters that would change the folder become `-`.
pub fn file_name(info: &VllmInfo) -> String {
    let label = info.label.as_deref().unwrap_or(&info.backend);
    let traffic = match &info.ramp {
        None => format!("{}qps", python_float(info.request_rate)),
        Some(ramp) => {
            let rate = |rate: f64| match rate.fract() {
                0.0 => format!("{rate:.0}"),
                _ => python_float(rate),
            };
            let (start, end) = (rate(ramp.start), rate(ramp.end));
            format!("ramp-up-{}-{start}qps-{end}qps", ramp.strategy)
        }
    };
    let cap = info.max_concurrency.map(|cap| format!("-concurrency{cap}")).unwrap_or_default();
    let model = info.model_id.rsplit('/').find(|part| !part.is_empty()).unwrap_or("model");
    let name = format!("{label}-{traffic}{cap}-{model}-{}.json", info.date);
    name.replace(['/', '\\'], "-")
}

/// Makes sure, before a run, that its result can be written into `folder` after it: creates it, and a
/// file in it that is removed at once.
pub fn check_folder(folder: &Path) -> Result<(), ReportError> {
    let failed = |source| ReportError::Folder { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let probe = folder.join(format!(".servebench-{}", std::process::id()));
    let failed = |source| ReportError::Open { path: probe.clone(), source };
    fs::write(&probe, b"").map_err(failed)?;
    // One that cannot be removed harms nobody.
    drop(fs::remove_file(&probe));
    Ok(())
}

/// Writes a result in place of what the file holds, or, if `append` is set, on a line of its own after
/// it.
pub fn write(path: &Path, text: &str, append: bool) -> Result<(), ReportError> {
    if append {
        return append_line(path, text);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let failed = |source| ReportError::Folder { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::RampInfo;

    #[test]
    fn names_are_those_of_the_python_tool() {
        let info = VllmInfo {
            backend: "openai".into(),
            model_id: "meta/Llama-3".into(),
            date: "20261130-101112".into(),
            request_rate: f64::INFINITY,
            ..VllmInfo::default()
        };
        assert_eq!(file_name(&info), "openai-infqps-Llama-3-20261130-101112.json");
        let info = VllmInfo {
            label: Some("mine".into()),
            request_rate: 50.0,
            max_concurrency: Some(2),
            ..info
        };
        assert_eq!(file_name(&info), "mine-50.0qps-concurrency2-Llama-3-20261130-101112.json");
        let ramp = RampInfo { strategy: "linear".into(), start: 1.0, end: 9.0, events: vec![] };
        let info = VllmInfo { ramp: Some(ramp), max_concurrency: None, ..info };
        let name = "mine-ramp-up-linear-1qps-9qps-Llama-3-20261130-101112.json";
        assert_eq!(file_name(&info), name);
    }

    #[test]
    fn results_replace_or_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        check_folder(folder.path()).unwrap();
        let path = folder.path().join("new").join("result.json");
        for (append, want) in
            [(false, "{}"), (true, "{}\n{}\n"), (true, "{}\n{}\n{}\n"), (false, "{}")]
        {
            write(&path, "{}", append).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), want);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
