//! `cargo xtask live`: the release build against a real server on CPU with a tiny model.

mod programs;

use crate::server::{Server, free_port};
use crate::{shell, smoke};
use anyhow::{Context, Result, ensure};
use programs::Programs;
use serde_json::Value;
use servebench_report::Presence;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

/// Measure a real server on CPU with the release build.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The server to start
    server: Family,
    /// Where the server's Python environment is made on first use [default: live/SERVER in the build folder]
    #[arg(long, value_name = "FOLDER")]
    venv: Option<PathBuf>,
    /// Longest wait for the server to be ready, its installation included, in seconds
    #[arg(long, default_value_t = 1800)]
    ready_seconds: u64,
    /// Requests for each backend
    #[arg(long, default_value_t = 32)]
    num_prompts: u32,
    /// A file in ShareGPT format to take prompts from, in place of random ids
    #[arg(long, value_name = "FILE")]
    sharegpt: Option<PathBuf>,
    /// Folder of the programs [default: their release builds, made anew]
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

impl Arguments {
    /// What is sent, always with the same number of output tokens.
    fn dataset(&self) -> Result<Vec<OsString>> {
        let output = OUTPUT_LEN.to_string();
        let words: Vec<&str> = match &self.sharegpt {
            Some(_) => vec!["sharegpt", "--sharegpt-output-len", &output],
            None => vec![
                "random-ids",
                "--random-input-len",
                "32",
                "--random-output-len",
                &output,
                "--random-range-ratio",
                "1.0",
            ],
        };
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        if let Some(file) = &self.sharegpt {
            // The program runs in a folder of its own.
            words.extend(["--dataset-path".into(), fs::canonicalize(file)?.into()]);
        }
        Ok(words)
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Family {
    /// llama.cpp: 0.2 GB to install, up in a second
    Llamacpp,
    /// SGLang: 6.4 GB to install, up in one to four minutes
    Sglang,
    /// vLLM: 6.1 GB to install, up in one to four minutes
    Vllm,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::Llamacpp => "llamacpp",
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Llamacpp => "run_llamacpp.sh",
            Self::Sglang => "run_sglang_cpu.sh",
            Self::Vllm => "run_vllm_cpu.sh",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Llamacpp => "models/tiny.gguf",
            Self::Sglang | Self::Vllm => "models/tiny-llama",
        }
    }

    /// The backends whose endpoints the server has.
    fn backends(self) -> &'static [&'static str] {
        match self {
            Self::Llamacpp => &["sglang-oai", "sglang-oai-chat", "vllm", "vllm-chat"],
            Self::Sglang => &["sglang", "sglang-native", "sglang-oai", "sglang-oai-chat"],
            Self::Vllm => &["vllm", "vllm-chat"],
        }
    }
}

const OUTPUT_LEN: u64 = 16;

/// Starts the server, measures it once for each backend that fits, runs the other programs on it, and stops
/// it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let family = arguments.server;
    let packages = ["bench-serving", "bench-one-batch-server", "profiler", "send-one"];
    let binaries = match &arguments.binaries {
        Some(folder) => fs::canonicalize(folder)?, // programs run in folders of their own
        None => shell::release_binaries(&packages)?,
    };
    let scripts = shell::root().join("tests/realserver");
    let venv = match &arguments.venv {
        Some(venv) => std::path::absolute(venv)?,
        None => shell::target()?.join("live").join(family.name()),
    };
    if let Some(parent) = venv.parent() {
        fs::create_dir_all(parent)?;
    }
    let port = free_port()?;
    let (script, model) = (scripts.join(family.script()), scripts.join(family.model()));
    let folder = smoke::empty_folder(&format!("live/{}", family.name()))?;
    let (log, traces) = (folder.join("server.log"), folder.join("traces"));
    let output = File::create(&log)?;
    let mut command = shell::command(&script);
    command.arg(&venv).arg(&model).arg(port.to_string());
    // vLLM is told at its start where traces go.
    command.env("PROFILE_DIR", &traces);
    // PyTorch 2.14 on CPU ends the server when a second profile with call stacks follows soon.
    command.env("SGLANG_PROFILE_WITH_STACK", "false");
    command.stdout(output.try_clone()?).stderr(output);
    println!("starting {}; its environment: {}", family.name(), venv.display());
    let mut server = Server::start(&mut command, port)?;
    let ready = server.wait_ready("/v1/models", Duration::from_secs(arguments.ready_seconds));
    ready
        .with_context(|| format!("{} did not start; its log: {}", family.name(), log.display()))?;
    for backend in family.backends() {
        let folder = smoke::empty_folder(&format!("live/{}-{backend}", family.name()))?;
        let mut bench = shell::command(binaries.join("bench-serving"));
        bench
            .args(["--backend", backend, "--base-url", &server.base_url(), "--model", "tiny"])
            .arg("--tokenizer")
            .arg(scripts.join("models/tiny-llama"))
            .arg("--dataset-name")
            .args(arguments.dataset()?)
            .args(["--num-prompts", &arguments.num_prompts.to_string(), "--max-concurrency", "4"])
            .args(["--disable-tqdm", "--output-details", "--output-file"])
            .arg(folder.join("result.jsonl"))
            .current_dir(&folder);
        shell::run(&mut bench).with_context(|| format!("backend {backend} failed"))?;
        let line = smoke::result_line(&folder)?;
        check(&line, arguments.num_prompts)
            .with_context(|| format!("backend {backend} on {}: wrong result", family.name()))?;
    }
    println!("live: {} backends measured {}", family.backends().len(), family.name());
    if matches!(family, Family::Llamacpp) {
        return Ok(()); // it has none of the control calls that the other programs need
    }
    let tokenizer = scripts.join("models/tiny-llama");
    let url = server.base_url();
    let programs = Programs { family, binaries: &binaries, tokenizer: &tokenizer, url: &url };
    programs.one_batch().context("bench-one-batch-server")?;
    programs.profiler(&traces).context("profiler")?;
    if matches!(family, Family::Sglang) {
        programs.send_ones().context("send-one")?;
    }
    drop(server);
    programs.launch(&script, &venv, &model).context("bench-one-batch-server --launch")?;
    println!("live: the other programs measured {}, too", family.name());
    Ok(())
}

/// Every key is there, every request completed with the tokens asked for, and the times are in their order.
fn check(line: &Value, requests: u32) -> Result<()> {
    let number = |key: &str| {
        line[key].as_f64().with_context(|| format!("`{key}` is {}, not a number", line[key]))
    };
    for key in servebench_report::keys() {
        let wanted = matches!(key.presence, Presence::Always | Presence::Details);
        ensure!(!wanted || line.get(key.key.as_ref()).is_some(), "`{}` is missing", key.key);
    }
    ensure!(line["completed"] == requests, "completed {} of {requests}", line["completed"]);
    ensure!(line["failed"] == 0, "{} failed: {}", line["failed"], line["failures"]);
    ensure!(line["simulated"] == false, "a real server was taken for a simulated one");
    let tokens = u64::from(requests) * OUTPUT_LEN;
    ensure!(
        line["total_output_tokens"] == tokens,
        "{} output tokens, not {tokens}",
        line["total_output_tokens"]
    );
    let (ttft, e2e) = (number("mean_ttft_ms")?, number("mean_e2e_latency_ms")?);
    ensure!(ttft > 0.0 && ttft < e2e, "mean TTFT {ttft} ms, mean E2E {e2e} ms");
    for key in ["mean_itl_ms", "mean_tpot_ms", "output_throughput", "duration"] {
        ensure!(number(key)? > 0.0, "`{key}` is not positive");
    }
    for key in ["ttfts", "itls", "latencies", "output_lens", "input_lens", "generated_texts"] {
        let entries = line[key].as_array().map_or(0, Vec::len);
        ensure!(entries as u32 == requests, "`{key}` has {entries} entries, not {requests}");
    }
    Ok(())
}
