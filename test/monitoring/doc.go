// Package monitoring tests config/prometheus: rules and alerts with promtool, and that each alert has a runbook.
package monitoring
