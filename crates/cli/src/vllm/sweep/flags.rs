//! The flags of the Python tools.

/// Every flag of `vllm bench sweep serve` 0.32.0: what may be abbreviated.
pub const SWEEP_SERVE_FLAGS: &[&str] = &[
    "--after-bench-cmd",
    "--bench-cmd",
    "--bench-params",
    "--continue-on-error",
    "--dry-run",
    "--experiment-name",
    "--help",
    "--link-vars",
    "--num-runs",
    "--output-dir",
    "--resume",
    "--serve-cmd",
    "--serve-params",
    "--server-ready-timeout",
    "--show-stdout",
    "--warmup-num-prompts",
];

/// Every flag of `vllm bench sweep serve_workload` 0.32.0: what may be abbreviated.
pub const SWEEP_SERVE_WORKLOAD_FLAGS: &[&str] = &[
    "--after-bench-cmd",
    "--bench-cmd",
    "--bench-params",
    "--continue-on-error",
    "--dry-run",
    "--experiment-name",
    "--help",
    "--link-vars",
    "--num-runs",
    "--output-dir",
    "--resume",
    "--serve-cmd",
    "--serve-params",
    "--server-ready-timeout",
    "--show-stdout",
    "--warmup-num-prompts",
    "--workload-iters",
    "--workload-var",
];

/// Every flag of `vllm bench sweep plot` 0.32.0: what may be abbreviated.
pub const SWEEP_PLOT_FLAGS: &[&str] = &[
    "--bin-by",
    "--col-by",
    "--curve-by",
    "--dry-run",
    "--fig-by",
    "--fig-dir",
    "--fig-dpi",
    "--fig-height",
    "--fig-name",
    "--filter-by",
    "--help",
    "--no-error-bars",
    "--row-by",
    "--scale-x",
    "--scale-y",
    "--var-x",
    "--var-y",
];

/// Every flag of `vllm bench sweep plot_pareto` 0.32.0: what may be abbreviated.
pub const SWEEP_PLOT_PARETO_FLAGS: &[&str] =
    &["--dry-run", "--gpu-count-var", "--help", "--label-by", "--user-count-var"];
