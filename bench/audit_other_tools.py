"""What Evidently and NannyML say about the tables with known truth, beside the audit.

    python bench/audit_other_tools.py evidently          # in an environment with Evidently
    python bench/audit_other_tools.py nannyml            # in one with NannyML
    python bench/audit_other_tools.py --write            # put the comparison into docs/audit.md

Both tools watch a model in production. So a model (the same as in `audit_truth.py`) is trained on the first 4 weeks;
these weeks, with out-of-fold predictions, are the reference. Settings are the tools' defaults, except for what has
none: Evidently compares the last 4 weeks with the reference (`DataDriftPreset` and the preset of the task, with their
own tests); NannyML gets all later weeks in chunks of 150 rows. The environments need numpy, pandas and scikit-learn
besides the tool: Evidently 0.7.23 needs `pandas<3`, NannyML 0.13.1 needs statsmodels, which it does not name.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from truth_tables import BOOSTING, KINDS, START, make_table

OUT = Path(__file__).with_suffix(".csv")
OURS = Path(__file__).with_name("audit_truth.csv")
PAGE = Path(__file__).parents[1] / "docs" / "audit.md"
BEGIN, END = "<!-- other tools, made by bench/audit_other_tools.py -->", "<!-- end of other tools -->"
REFERENCE = CURRENT = 4  # weeks
CHUNK = 150  # rows
QUALITY = ("Accuracy", "RocAuc", "RMSE")
COMPARED = (
    "no drift",
    "inputs move",
    "base rate moves",
    "noise rises",
    "abrupt, mild",
    "abrupt at a boundary",
    "gradual",
    "seasonal, cycle of 4",
    "rare positives, no drift",
    "rare positives, replaced",
    "regression, no drift",
    "regression, abrupt",
    "regression, noise rises",
)
RIGHT = {
    "no drift": "Keep the model",
    "inputs move": "Keep the model; inputs moved",
    "base rate moves": "Recalibrate",
    "noise rises": "Harder for any model; retraining does not help",
    "seasonal, cycle of 4": "The relation follows a season: train on the same season",
    "rare positives, no drift": "Keep the model",
    "regression, no drift": "Keep the model",
    "regression, noise rises": "Harder for any model; retraining does not help",
}
"""What is true; of all others: the relation changed, retrain."""
Row = dict[str, Any]


def deployed(name: str, repeat: int) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return the reference with out-of-fold predictions, later rows with those of the deployed model, and inputs."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.model_selection import cross_val_predict

    frame, _ = make_table(name, repeat)
    week = (frame["when"] - START) / pd.Timedelta(days=7)
    features, is_class = [c for c in frame.columns if c.startswith("x")], frame["y"].dtype.kind not in "if"
    frame["y"] = (frame["y"] == "yes").astype(int) if is_class else frame["y"]
    model: Any = LinearRegression()
    if is_class:
        model = HistGradientBoostingClassifier() if KINDS[name][1] == BOOSTING else LogisticRegression()
    before, after = frame[week < REFERENCE].copy(), frame[week >= REFERENCE].copy()
    method = "predict_proba" if is_class else "predict"
    known = cross_val_predict(model, before[features], before["y"], method=method)
    later = getattr(model.fit(before[features], before["y"]), method)(after[features])
    for part, answers in ((before, known), (after, later)):
        if is_class:
            part["probability"], part["prediction"] = answers[:, 1], answers.argmax(axis=1)
        else:
            part["prediction"] = answers
    return before, after, features


def ask_evidently(name: str, repeat: int) -> Row:
    """Return whether the data set drifted, the drifted columns, and whether a test of accuracy, AUC or RMSE failed."""
    from evidently import BinaryClassification, DataDefinition, Dataset, Regression, Report
    from evidently.presets import ClassificationPreset, DataDriftPreset, RegressionPreset

    before, after, features = deployed(name, repeat)
    current = after[after["when"] >= after["when"].max() - pd.Timedelta(days=7 * CURRENT)]
    is_class = "probability" in before
    if is_class:
        tasks: Any = {
            "classification": [
                BinaryClassification(target="y", prediction_labels="prediction", prediction_probas="probability")
            ]
        }
    else:
        tasks = {"regression": [Regression(target="y", prediction="prediction")]}
    columns = {"numerical_columns": features} | (
        {"categorical_columns": ["y", "prediction"]}
        if is_class
        else {"numerical_columns": [*features, "y", "prediction"]}
    )
    definition = DataDefinition(**tasks, **columns)
    reference, newest = (
        Dataset.from_pandas(part.drop(columns="when"), data_definition=definition) for part in (before, current)
    )
    presets = [DataDriftPreset(), ClassificationPreset() if is_class else RegressionPreset()]
    found = Report(presets, include_tests=True).run(newest, reference).dict()
    drifted = next(m["value"] for m in found["metrics"] if "DriftedColumnsCount" in str(m))
    failed = [t["name"] for t in found["tests"] if str(getattr(t["status"], "value", t["status"])) == "FAIL"]
    quality = any(text.startswith(QUALITY) for text in failed)
    drift = {"inputs": float(drifted["share"] >= 0.5), "columns": float(drifted["count"])}
    return {**drift, "quality": float(quality), "estimated": ""}


def ask_nannyml(name: str, repeat: int) -> Row:
    """Return the share of chunks with an alert: of inputs (any of them, or together), estimated and real quality."""
    import nannyml

    before, after, features = deployed(name, repeat)
    is_class = "probability" in before
    problem = "classification_binary" if is_class else "regression"
    metrics = ["roc_auc", "accuracy"] if is_class else ["rmse"]
    chunks = {"chunk_size": CHUNK, "timestamp_column_name": "when"}
    model = {"y_true": "y", "y_pred": "prediction"} | ({"y_pred_proba": "probability"} if is_class else {})
    univariate = nannyml.UnivariateDriftCalculator(features, **chunks)
    together = nannyml.DataReconstructionDriftCalculator(features, **chunks)
    real = nannyml.PerformanceCalculator(metrics, problem_type=problem, **model, **chunks)
    if is_class:
        estimator: Any = nannyml.CBPE(metrics, problem_type=problem, **model, **chunks)
    else:
        estimator = nannyml.DLE(features, "prediction", "y", metrics=metrics, **chunks)
    alerts = {}
    for key, calculator in (
        ("univariate", univariate),
        ("together", together),
        ("quality", real),
        ("estimated", estimator),
    ):
        table = (
            calculator.fit(before).calculate(after) if key != "estimated" else calculator.fit(before).estimate(after)
        )
        found = table.filter(period="analysis").to_df()
        marks = found.loc[:, [column for column in found.columns if column[-1] == "alert"]].to_numpy(bool)
        alerts[key] = marks.any(axis=1)
    inputs = alerts["univariate"] | alerts["together"]
    quality, estimated = (alerts[key].mean() for key in ("quality", "estimated"))
    return {"inputs": inputs.mean(), "columns": "", "quality": quality, "estimated": estimated}


TOOLS: dict[str, Callable[[str, int], Row]] = {"evidently": ask_evidently, "nannyml": ask_nannyml}


def audited(rows: list[Row]) -> str:
    """Return what the audit says: the share of each finding among the tables."""
    alerts = []
    for key in ("aged", "miscalibrated", "unordered", "harder", "easier"):
        share = np.mean([row[key] == "True" for row in rows])
        if share:
            alerts.append(f"{key} {share:.2f}")
    return ", ".join(alerts) or "nothing"


def summary(found: list[Row], ours: list[Row]) -> str:
    """Return the comparison as Markdown."""
    lines = [
        "| truth | right answer | n | audit | Evidently: data drift (drifted columns); quality test failed | NannyML, "
        "chunks with an alert: inputs; estimated quality; real quality |",
        "|" + "---|" * 6,
    ]
    for name in COMPARED:
        of = {tool: [row for row in found if row["kind"] == name and row["tool"] == tool] for tool in TOOLS}
        if not all(of.values()):
            continue
        repeats = {row["repeat"] for row in of["evidently"]} & {row["repeat"] for row in of["nannyml"]}
        same = [row for row in ours if row["kind"] == name and row["repeat"] in repeats]
        mean = {
            (tool, key): np.mean([float(row[key]) for row in rows if row["repeat"] in repeats and row[key]])
            for tool, rows in of.items()
            for key in ("inputs", "columns", "quality", "estimated")
            if rows[0][key]
        }
        drift, columns, quality = (mean["evidently", key] for key in ("inputs", "columns", "quality"))
        first = f"{drift:.2f} ({columns:.1f}); {quality:.2f}"
        second = "; ".join(f"{mean['nannyml', key]:.2f}" for key in ("inputs", "estimated", "quality"))
        right = RIGHT.get(name, "The relation changed: retrain")
        lines.append(f"| {name} | {right} | {len(repeats)} | {audited(same)} | {first} | {second} |")
    return "\n".join(lines)


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", nargs="?", choices=list(TOOLS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="put the comparison into docs/audit.md")
    options = parser.parse_args()
    if options.tool and find_spec(options.tool) is None:
        sys.exit(f"{options.tool} is not installed here, so it was not asked: pip install {options.tool}")
    done = {(row["tool"], row["kind"], int(row["repeat"])) for row in read(OUT)}
    for repeat in range(options.repeats if options.tool else 0):
        for name in COMPARED:
            if (options.tool, name, repeat) in done:
                continue
            row = {"tool": options.tool, "kind": name, "repeat": repeat, **TOOLS[options.tool](name, repeat)}
            with OUT.open("a", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(
                    {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
                )
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        text = summary(read(OUT), read(OURS))
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
