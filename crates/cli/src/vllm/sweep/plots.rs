//! Pictures of the summaries of sweeps.

use super::args::{PlotCommand, PlotParetoCommand};
use crate::exit::OrCode;
use crate::{Code, Failure, Io};
use servebench_plots::{ParetoPlot, Row, ScaleKind, SweepPlot};
use std::fs;
use std::path::{Path, PathBuf};

/// Draws a figure for each group of runs.
pub(super) fn plot(command: &PlotCommand, io: &Io) -> Result<Code, Failure> {
    if command.fig_dpi.is_some() {
        io.say("note: --fig-dpi does nothing: pictures are SVG, sharp at any size");
    }
    let scale = |flag: &str, text: &Option<String>| match text {
        Some(text) => text.parse().map_err(|error| Failure::usage(format!("{flag}: {error}"))),
        None => Ok(ScaleKind::Linear),
    };
    let filters = list(&command.filter_by).iter().map(|text| text.parse()).collect();
    let filters: Result<Vec<_>, _> = filters;
    let bins = list(&command.bin_by).iter().map(|text| text.parse()).collect();
    let bins: Result<Vec<_>, _> = bins;
    let plot = SweepPlot {
        figure_by: list(&command.fig_by),
        row_by: list(&command.row_by),
        column_by: list(&command.col_by),
        curve_by: list(&command.curve_by),
        x: command.var_x.clone(),
        y: command.var_y.clone(),
        filters: filters.map_err(|error| Failure::usage(format!("--filter-by: {error}")))?,
        bins: bins.map_err(|error| Failure::usage(format!("--bin-by: {error}")))?,
        x_scale: scale("--scale-x", &command.scale_x)?,
        y_scale: scale("--scale-y", &command.scale_y)?,
        error_bars: !command.no_error_bars,
        height_inches: command.fig_height,
        name: command.fig_name.clone(),
    };
    let runs = runs(&command.experiment_dir)?;
    let folder = command.experiment_dir.join(command.fig_dir.as_deref().unwrap_or(Path::new("")));
    let figures = if command.dry_run { plot.plan(&runs) } else { plot.figures(&runs) };
    for figure in figures.or_code(Code::Data)? {
        let file = folder.join(format!("{}.svg", figure.stem));
        let group: Vec<String> =
            figure.group.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let group = if group.is_empty() { "(All)".to_owned() } else { group.join(", ") };
        let (rows, columns) = (figure.rows, figure.columns);
        io.print(format_args!(
            "[BEGIN FIGURE]\nGroup: {group}\nGrid: {rows} rows x {columns} cols\nOutput file: {}",
            file.display()
        ))
        .or_code(Code::Output)?;
        match figure.picture {
            Some(picture) => write(&file, &picture.to_svg())?,
            None if command.dry_run => {}
            None => io.say("no run of this figure passes the filters: it is not drawn"),
        }
        if figure.left_out > 0 {
            io.say(format_args!("{} points have no place on the axes", figure.left_out));
        }
        io.print("[END FIGURE]").or_code(Code::Output)?;
    }
    Ok(Code::Done)
}

/// Draws the frontier.
pub(super) fn plot_pareto(command: &PlotParetoCommand, io: &Io) -> Result<Code, Failure> {
    let plot = ParetoPlot {
        user_count: Some(command.user_count_var.clone()),
        gpu_count: command.gpu_count_var.clone(),
        label_by: list(&command.label_by),
    };
    let pareto = plot.draw(&runs(&command.experiment_dir)?).or_code(Code::Data)?;
    let file = command.experiment_dir.join("pareto").join("PARETO.svg");
    if pareto.skipped > 0 {
        io.say(format_args!("{} runs left out: nothing tells their users", pareto.skipped));
    }
    io.print(format_args!("Output file: {}", file.display())).or_code(Code::Output)?;
    if !command.dry_run
        && let Some(picture) = &pareto.picture
    {
        write(&file, &picture.to_svg())?;
    }
    io.print(format_args!(
        "Plotted {} points; Pareto frontier size: {}.",
        pareto.points.len(),
        pareto.frontier.len()
    ))
    .or_code(Code::Output)?;
    Ok(Code::Done)
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let context = |error: std::io::Error| {
        Failure::new(Code::Output, anyhow::Error::new(error).context(file.display().to_string()))
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(context)?;
    }
    fs::write(file, text).map_err(context)
}

/// The runs of every `summary.json` below a folder, in the order of their paths.
fn runs(folder: &Path) -> Result<Vec<Row>, Failure> {
    let mut files = Vec::new();
    collect(folder, &mut files).map_err(|error| {
        Failure::new(Code::Data, anyhow::Error::new(error).context(folder.display().to_string()))
    })?;
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        let read = || -> Result<Vec<Row>, anyhow::Error> {
            Ok(serde_json::from_slice(&fs::read(&file)?)?)
        };
        let context = |error: anyhow::Error| error.context(file.display().to_string());
        runs.extend(read().map_err(context).or_code(Code::Data)?);
    }
    Ok(runs)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A link to a folder is not followed: it might lead back.
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if entry.file_name() == "summary.json" {
            files.push(entry.path());
        }
    }
    Ok(())
}
