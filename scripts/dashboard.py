"""Writes dashboards/io-harness.json, for Grafana: `uv run python -m scripts.dashboard`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "dashboards" / "io-harness.json"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT = 8, 8
_COLUMNS = 24


@dataclass(frozen=True)
class Panel:
    """One chart: expressions with what each line is called."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (rate({metric}[$__rate_interval]))"


def _hourly(metric: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (increase({metric}[1h]))"


def _quantile(quantile: float, metric: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return (
        f"histogram_quantile({quantile}, sum by ({by}) (rate({metric}_bucket[$__rate_interval])))"
    )


ROWS = (
    Row("Runs", (
        Panel("Runs that ended, per hour", "short", (
            (_hourly("io_harness_runs_total", "io_harness_outcome"), "{{io_harness_outcome}}"),)),
        Panel("Time of a run", "s", (
            (_quantile(0.5, "io_harness_run_duration_seconds"), "half"),
            (_quantile(0.95, "io_harness_run_duration_seconds"), "95 %"),
            (_quantile(0.95, "io_harness_run_waiting_seconds"), "waiting for people, 95 %"))),
        Panel("Verdicts of the verification, per hour", "short", (
            (_hourly("io_harness_verifications_total", "io_harness_verification_verdict"),
             "{{io_harness_verification_verdict}}"),)),
    )),
    Row("Models", (
        Panel("US dollars per hour", "currencyUSD", (
            (_hourly("io_harness_model_call_cost_usd_sum", "gen_ai_request_model"),
             "{{gen_ai_request_model}}"),)),
        Panel("Tokens per second", "short", (
            (_rate("gen_ai_client_token_usage_sum", "gen_ai_request_model", "gen_ai_token_type"),
             "{{gen_ai_request_model}} {{gen_ai_token_type}}"),)),
        Panel("Time of a model call, 95 %", "s", (
            (_quantile(0.95, "gen_ai_client_operation_duration_seconds", "gen_ai_request_model"),
             "{{gen_ai_request_model}}"),)),
        Panel("Model calls that failed, per second", "short", (
            ("sum by (gen_ai_request_model, error_type) "
             '(rate(gen_ai_client_operation_duration_seconds_count{error_type!=""}'
             "[$__rate_interval]))", "{{gen_ai_request_model}} {{error_type}}"),)),
    )),
    Row("Tools", (
        Panel("Time of a tool call, 95 %", "s", (
            (_quantile(0.95, "gen_ai_execute_tool_duration_seconds", "gen_ai_tool_name"),
             "{{gen_ai_tool_name}}"),)),
        Panel("Sandboxed commands per second, by how they ended", "short", (
            (_rate("io_harness_sandbox_duration_seconds_count", "io_harness_sandbox_cause"),
             "{{io_harness_sandbox_cause}}"),)),
        Panel("Calls that the policy refused, per hour", "short", (
            (_hourly("io_harness_refusals_total", "io_harness_policy_layer"),
             "{{io_harness_policy_layer}}"),)),
    )),
    Row("Workers", (
        Panel("Free slots", "short", (
            ("min by (worker_type) (temporal_worker_task_slots_available)", "{{worker_type}}"),)),
        Panel("Wait for a worker, 95 %", "s", (
            (_quantile(0.95, "temporal_activity_schedule_to_start_latency_seconds"), "activities"),
            (_quantile(0.95, "temporal_workflow_task_schedule_to_start_latency_seconds"),
             "workflow tasks"))),
        Panel("Runs in the cache, and replays per second", "short", (
            ("sum (temporal_sticky_cache_size)", "cached"),
            (_rate("temporal_workflow_task_replay_latency_seconds_count", "task_queue"),
             "replays {{task_queue}}"))),
        Panel("Requests to Temporal, 95 %", "s", (
            (_quantile(0.95, "temporal_request_latency_seconds", "operation"), "{{operation}}"),)),
    )),
)  # fmt: skip


def render() -> str:
    panels: list[dict[str, Any]] = []
    y = 0
    for row in ROWS:
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": y}
        panels.append({"type": "row", "title": row.title, "gridPos": place, "panels": []})
        y += 1
        for index, panel in enumerate(row.panels):
            x = index * _WIDTH % _COLUMNS
            if index and x == 0:
                y += _HEIGHT
            panels.append(_panel(panel, x, y))
        y += _HEIGHT
    for number, each in enumerate(panels, start=1):
        each["id"] = number
    return json.dumps(_dashboard(panels), indent=2) + "\n"


def _panel(panel: Panel, x: int, y: int) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": expression,
             "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.lines)
        ],
    }  # fmt: skip


def _dashboard(panels: list[dict[str, Any]]) -> dict[str, Any]:
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "io-harness",
        "title": "io-harness",
        "tags": ["io-harness", "temporal"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(render(), encoding="utf-8")
