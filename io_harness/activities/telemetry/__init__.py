"""Spans and metrics, by OpenTelemetry's API and its conventions for generative AI.

Where no OpenTelemetry SDK is configured, all of this does nothing. Metrics are recorded by activities
alone: they are never replayed, so nothing is counted twice, wherever a run goes on.

https://github.com/open-telemetry/semantic-conventions-genai
"""
